/** Node reads TypeScript by itself from 24 on; before that tsx does. To be given to `--import`. */
import process from 'node:process';

if (Number(process.versions.node.split('.')[0]) < 24) await import('tsx');
