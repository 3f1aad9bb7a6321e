// Where the pages begin.
import { render } from "preact";
import { App } from "./app";
import { followKeys } from "./keys";
import { followVisibility } from "./live";
import { followLinks } from "./router";
import { begin } from "./session";
import { followTheme } from "./theme";
import { tick } from "./when";

followTheme();
followLinks();
followKeys();
followVisibility();
tick();
render(<App />, document.getElementById("page")!);
void begin();
