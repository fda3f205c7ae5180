#!/usr/bin/env node
// In the repository nothing is compiled: there the sources run, and the client's with them.
import { existsSync } from 'node:fs';

const isSource = existsSync(new URL('../src/main.ts', import.meta.url));
if (isSource) await import('./sources.js');
const { main } = await import(isSource ? '../src/main.ts' : '../dist/main.js');
await main();
