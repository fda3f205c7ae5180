import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { isSafePattern } from 'redos-detector';
import ts from 'typescript-api';
import { settings } from '../../src/settings.ts';
import { operatorsDocument } from '../support/service.ts';
import { lineAt, nodesOf, readFolder } from '../support/sources.ts';

/**
 * No pattern can be made slow by its text: the places at which matching may have to try again are counted by an
 * analysis of the pattern, not by a clock. One whose score has no bound takes the square of its text, or worse.
 */
const effort = { maxScore: 50, maxSteps: 3_000, timeout: Number.POSITIVE_INFINITY };

/** Patterns of which the analysis cannot say so, and why they never meet a long text that a stranger wrote. */
const spared: Readonly<Record<string, string>> = {
  '/\\/+$/': 'read once, from the settings',
  '/^(?:\\[(.+)\\]|([^:]+))(?::\\d{1,5})?$/': 'read once, from the settings',
  '/\\s|-----[^-]*-----/g': 'a key from the settings',
  '/_SERVICE_(HOST|PORT)|_PORT(_\\d+_(TCP|UDP).*)?$/': 'names of our own environment',
  '/^application\\/json\\s*(;\\s*charset="?utf-8"?\\s*)?;?\\s*$/i':
    'the length is looked at first: below 100',
  '/^(?=.{4,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\\.)+[a-z0-9-]{2,63}$/': 'at most 253 characters',
  '/(?:^|\\.)(?:local|localhost|localdomain|internal|intranet|private|corp|home|lan|svc|onion|alt|invalid|home\\.arpa)$/':
    'a name that has passed the pattern above; and after a dot nothing is tried twice',
  '/^[ -]*(?:(?:\\+[ -]*)?2[ -]*5[ -]*5|0)[ -]*[67](?:[ -]*[0-9]){8}[ -]*$/u':
    'every run of separators is ended by a digit, so nothing is tried twice',
  '/\\b(kusanya_[a-z]+_(?:sk_)?|whsec_)[\\w+/-]{8,}={0,2}/g': 'after eight letters it can no longer fail',
  '/^(.+)\\.\\d+\\.\\d+$/': 'ids of our own calls',
  '/[-:]|\\.\\d+Z/g': 'a time that we wrote',
  '/:merchant_\\w+$/': 'accounts of our own books',
  '/\\bboundary=(?:"([^"]{1,70})"|([^\\s;,"]{1,70}))/i': 'from each beginning at most 70 characters',
  '/\\bname="([^"]*)"/i': 'what is begun is ended by the next quotation mark, whichever that is',
  '/underReview|latePaid\\.(held|returning)|^failing|lastTry|^held$|halfOpen|^entered/':
    'states of our own charts',
  '/^(failed|expired|disabled|open|returned)|reversed|quarantined/': 'states of our own charts',
  '/;\\s*q=/': 'begins at a semicolon only, so nothing is tried twice',
  '/^[ -]*(?:(?:\\+[ -]*)?2[ -]*5[ -]*5|0)[ -]*[67](?:[ -]*[0-9]){8}[ -]*$/':
    'every run of separators is ended by a digit, so nothing is tried twice',
  '/\\b(settlement|organi[sz]ation withdrawal|(to|from) (the )?bank|working account)\\b/i':
    'a field of a statement that an operator brings',
  '/\\b(business payment|business pay bill|b2c|b2b|salary payment|payout)\\b/i':
    'a field of a statement that an operator brings',
  '/^\\s*(\\(|(TZS|TSh\\.?)?\\s*-)/i': 'a field of a statement that an operator brings',
  '/\\bcurrency\\b\\W*([A-Z]{3})\\b/i': 'a field of a statement that an operator brings',
  '/\\bshort\\s*code\\b\\W*(\\d{3,10})\\b/i': 'a field of a statement that an operator brings',
  '/^(?:(?:receipt|completedAt|initiatedAt|details|status|paidIn|withdrawn|amount|balance|confirmed|reason|party|linked|account|currency|ignored)=[^=;]+(?:;|$))*$/u':
    'read once, from the settings',
  '/`([^`]+)`|\\*\\*([\\s\\S]+?)\\*\\*|\\*([^*\\s][^*]*)\\*|\\[((?:[^\\]`]|`[^`]*`)+)\\]\\(([^)\\s]+)\\)/g':
    'our own documents, once',
  '/\\{(\\w+)\\}/g': 'paths of our own routes',
};

/** Pattern as it stands in a source → where it stands first. */
function patterns(): Map<string, string> {
  const found = new Map<string, string>();
  const add = (text: string, where: string) => {
    if (!found.has(text)) found.set(text, where);
  };
  for (const { path, tree } of ['src', 'machines'].flatMap(readFolder)) {
    for (const node of nodesOf(tree))
      if (ts.isRegularExpressionLiteral(node)) add(node.text, `${path}:${lineAt(tree, node.getStart(tree))}`);
  }
  const openapi = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8');
  const walk = (value: unknown, where: string): void => {
    if (typeof value !== 'object' || value === null) return;
    // ajv makes patterns of schemas with the flag u.
    const { pattern } = value as { pattern?: unknown };
    if (typeof pattern === 'string') add(`/${pattern}/u`, where);
    for (const inner of Object.values(value)) walk(inner, where);
  };
  walk(JSON.parse(openapi), 'openapi.json');
  walk(operatorsDocument(), 'the operators’ document');
  walk(settings, 'src/settings.ts');
  return found;
}

describe('patterns', () => {
  const found = patterns();

  it('are found in sources and in schemas', () => {
    expect(found.size).to.be.above(100);
    expect([...found.values()].filter((where) => where.startsWith('src/')).length).to.be.above(50);
  });

  it('take time in proportion to their text', function () {
    this.timeout(300_000);
    const faults: string[] = [];
    for (const [text, where] of found) {
      const end = text.lastIndexOf('/');
      const flags = text.slice(end + 1);
      const { safe, error } = isSafePattern(text.slice(1, end), {
        caseInsensitive: flags.includes('i'),
        dotAll: flags.includes('s'),
        multiLine: flags.includes('m'),
        unicode: flags.includes('u'),
        ...effort,
      });
      const isSpared = text in spared;
      if (safe === isSpared) faults.push(`${where}: ${text} ${safe ? 'need not be spared' : error}`);
    }
    for (const text of Object.keys(spared)) if (!found.has(text)) faults.push(`${text} is spared and gone`);
    expect(faults).to.deep.equal([]);
  });

  it('of the kinds that can be made slow are recognised', () => {
    for (const slow of ['^(a+)+$', '^(a|a)*$', '\\s+$', '^a\\s*(;\\s*b)?\\s*$'])
      expect(isSafePattern(slow, effort).safe, slow).to.equal(false);
  });
});
