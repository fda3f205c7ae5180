/** Lets Node import TypeScript, and packages of the repository as their sources. Not published. */
import { register } from 'node:module';
import { register as registerTsx } from 'tsx/esm/api';

registerTsx();
register('./conditions.js', import.meta.url);
