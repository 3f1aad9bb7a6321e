// What of a browser the pages' code asks for as soon as it is loaded, for tests that run without one.
const place = { pathname: "/", search: "", hash: "", origin: "http://console.test", href: "http://console.test/" };

Object.assign(globalThis, {
  location: place,
  innerWidth: 1440,
  addEventListener: () => undefined,
  matchMedia: () => ({ matches: false, addEventListener: () => undefined }),
});

export {};
