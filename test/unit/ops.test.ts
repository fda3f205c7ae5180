import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { Metrics } from '../../src/metrics/metrics.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');

interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; action: string };
}

interface Panel {
  title: string;
  type: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
}

const { groups } = parse(read('ops/alerts.yml')) as { groups: { name: string; rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const { panels } = JSON.parse(read('ops/grafana/kusanya.json')) as { panels: Panel[] };
const metrics = new Metrics();

/** Words of PromQL that are no names, and `up`, which Prometheus makes. */
const words = new Set(['and', 'or', 'unless', 'by', 'on', 'without', 'ignoring', 'offset', 'bool', 'up']);

/** The metrics that an expression asks for: its words, but for functions, labels and keywords. */
function namesIn(expr: string): string[] {
  const bare = expr
    .replaceAll(/"[^"]*"/g, '')
    .replaceAll(/\{[^}]*\}/g, '')
    .replaceAll(/\[[^\]]*\]/g, '')
    .replaceAll(/\b(by|on|without|ignoring)\s*\([^)]*\)/g, '');
  const found = [...bare.matchAll(/[a-zA-Z_:][\w:]*(?!\w*\s*\()/g)].map(([word]) => word);
  return found.filter((word) => !words.has(word));
}

/** Every name that Prometheus stores of ours. */
const stored = new Set<string>();

/** The labels of a metric of ours. */
function labelsOf(name: string): string[] {
  const { registry } = metrics;
  const metric =
    registry.getSingleMetric(name) ?? registry.getSingleMetric(name.replace(/_(bucket|sum|count)$/, ''));
  return (metric as unknown as { labelNames: string[] }).labelNames;
}

describe('alert rules and dashboard', () => {
  before(async () => {
    for (const [, name, type] of (await metrics.text()).matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
      if (type !== 'histogram') stored.add(name!);
      else for (const part of ['bucket', 'sum', 'count']) stored.add(`${name}_${part}`);
    }
  });

  it('ask only for metrics that there are', () => {
    const asked = [...rules, ...panels.flatMap(({ targets }) => targets ?? [])].map(({ expr }) => expr);
    for (const expr of asked) {
      const names = namesIn(expr);
      if (!/^up\{/.test(expr)) expect(names, expr).to.not.deep.equal([]);
      for (const name of names) expect(stored.has(name), `${name} in ${expr}`).to.equal(true);
    }
  });

  it('ask only for labels that those metrics have', () => {
    const asked = [...rules, ...panels.flatMap(({ targets }) => targets ?? [])].map(({ expr }) => expr);
    for (const expr of asked) {
      for (const [, name, matchers] of expr.matchAll(/([a-z][\w]*)\{([^}]*)\}/g)) {
        if (name === 'up') continue;
        for (const [, label] of matchers!.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g))
          expect(labelsOf(name!), `${name} in ${expr}`).to.include(label);
      }
    }
  });

  it('name every alert once, with its severity and what to do', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).to.equal(rules.length);
    for (const { alert, labels, annotations } of rules) {
      expect(['critical', 'warning', 'info'], alert).to.include(labels.severity);
      expect(annotations.summary, alert).to.be.a('string');
      expect(annotations.action, alert).to.be.a('string');
    }
  });

  it('lay no panel of the dashboard over another', () => {
    const taken = new Map<string, string>();
    for (const { title, gridPos } of panels) {
      expect(gridPos.x + gridPos.w, title).to.be.at.most(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.get(`${x}.${y}`), `${title} lies over`).to.equal(undefined);
          taken.set(`${x}.${y}`, title);
        }
      }
    }
  });

  it('are where docker-compose.yml looks for them', () => {
    const { services } = parse(read('docker-compose.yml')) as {
      services: Record<string, { volumes?: string[]; profiles?: string[]; image?: string }>;
    };
    for (const name of ['prometheus', 'grafana']) {
      const { volumes = [], profiles, image } = services[name]!;
      expect(profiles).to.deep.equal(['observability']);
      expect(image).to.match(/:v?\d+\.\d+\.\d+$/);
      const ours = volumes.filter((volume) => volume.startsWith('./'));
      expect(ours).to.not.deep.equal([]);
      for (const volume of ours) {
        const [path = ''] = volume.split(':');
        const folder = new URL(path.slice(2).replace(/[^/]*$/, ''), root);
        expect(readdirSync(folder), volume).to.include(path.split('/').at(-1));
      }
    }
    expect(parse(read('ops/prometheus.yml')).rule_files).to.deep.equal(['alerts.yml']);
  });
});
