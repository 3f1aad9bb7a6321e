// A real OpenID provider (oidc-provider, certified) with a few people, for the tests of login.
//
// `node server.mjs '{"client_secret": "…", …}'` prints one line of JSON with its address and ends with its stdin. A person
// is whoever the header `x-person` names, so that a test confirms a login as a browser would, over plain HTTP. What a
// test may change meanwhile is below /control/.
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import Provider from 'oidc-provider';

const wish = JSON.parse(process.argv[2] ?? '{}');
const people = new Map(Object.entries(wish.people ?? {}));
const clientSecret = wish.client_secret ?? undefined; // none: a public client

function newKeys() {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
  return [rsa, ec].map((key) => ({ ...key, use: 'sig', kid: randomBytes(8).toString('hex') }));
}

function configuration(keys) {
  return {
    jwks: { keys },
    clients: [{
      client_id: 'muster',
      client_secret: clientSecret,
      token_endpoint_auth_method: clientSecret ? 'client_secret_basic' : 'none',
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'authorization_code'],
      redirect_uris: ['https://console.example/v1/login/callback'],
      response_types: ['code'],
      id_token_signed_response_alg: wish.algorithm ?? 'RS256',
    }],
    features: { deviceFlow: { enabled: true }, devInteractions: { enabled: false }, userinfo: { enabled: true } },
    claims: { openid: ['sub'], profile: ['preferred_username'], email: ['email', 'email_verified'], groups: ['groups'] },
    scopes: ['openid', 'profile', 'email', 'groups'],
    // True is what the standard says: claims are told to those who ask for them with the access token.
    conformIdTokenClaims: wish.claims_in_token !== true,
    cookies: { keys: ['only for tests'] },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    ttl: { DeviceCode: wish.device_ttl ?? 600, IdToken: 300, AccessToken: 300, Session: 600, Grant: 600, Interaction: 600 },
    findAccount: (_, subject) => ({ accountId: subject, claims: () => ({ sub: subject, ...people.get(subject) }) }),
  };
}

// Logs a person in and gives the client all that it asks for: what people click together at a real provider.
async function interact(provider, request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    const subject = request.headers['x-person'];
    const result = people.has(subject) ? { login: { accountId: subject } } : { error: 'access_denied' };
    return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  const result = { consent: { grantId: await grant.save() } };
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

async function control(request, response, issuer) {
  let body = '';
  for await (const chunk of request) body += chunk;
  const said = JSON.parse(body || '{}');
  if (request.url === '/control/person') people.set(said.subject, said.claims);
  else if (request.url === '/control/rotate') serve(issuer);
  else response.statusCode = 404;
  response.end();
}

let provider;
let answer;
function serve(issuer) {
  provider = new Provider(issuer, configuration(newKeys()));
  answer = provider.callback(); // codes outlive it: they are in a store that all providers of this process share
}

const tls = wish.certificate && { cert: readFileSync(wish.certificate), key: readFileSync(wish.key) };
const server = tls ? createHttps(tls) : createHttp();
server.on('request', (request, response) => {
  const turn = request.url.startsWith('/control/')
    ? control(request, response, issuer)
    : request.url.startsWith('/interaction/')
      ? interact(provider, request, response)
      : answer(request, response);
  Promise.resolve(turn).catch((error) => {
    console.error(error);
    response.statusCode = 500;
    response.end();
  });
});

let issuer;
server.listen(0, '127.0.0.1', () => {
  issuer = `${tls ? 'https' : 'http'}://127.0.0.1:${server.address().port}`;
  serve(issuer);
  console.log(JSON.stringify({ issuer }));
});
process.stdin.on('end', () => process.exit(0)).resume();
