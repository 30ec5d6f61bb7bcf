import "uplot/dist/uPlot.min.css";
import "./style.css";

import { render } from "preact";

import { App } from "./app";
import { followTheme } from "./theme";

const root = document.getElementById("console");
if (root === null) throw new Error("index.html has no element for the console");
followTheme();
render(<App />, root);
