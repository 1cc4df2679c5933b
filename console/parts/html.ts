// Markup in templates: htm on Preact.

import * as htm from 'htm';
import { h, type VNode } from 'preact';

type Html = (strings: TemplateStringsArray, ...values: unknown[]) => VNode;

// Its types describe a CommonJS module, but in browsers the function is the module's default export.
export const html = (htm.default as unknown as { bind(make: typeof h): Html }).bind(h);
