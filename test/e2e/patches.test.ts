import { expect } from 'chai';
import { operatorsDocument, startTestService, type TestService } from '../support/service.ts';

interface Schema {
  type?: string;
  enum?: unknown[];
  anyOf?: Schema[];
  minimum?: number;
  maxLength?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  $ref?: string;
}

/**
 * Every field of every PATCH route, with every kind of value that it takes: the answer, what is read afterwards and the
 * audit say the same. A field whose null was dropped on the way would answer null and change nothing.
 */
describe('what operators change', () => {
  let test: TestService;

  before(async () => {
    test = await startTestService();
  });
  after(() => test.stop());

  /** Something of each kind that can be changed. A new PATCH route needs its line here. */
  const made: Record<string, () => Promise<string>> = {
    '/admin/merchants/{id}': async () => (await test.merchant()).id,
    '/admin/endpoints/{id}': async () => {
      const { id } = await test.merchant();
      return (await test.endpoint(id, 'http://127.0.0.1:8080/a', { description: 'shop' })).id;
    },
  };
  /** Values that no schema tells. */
  const known: Record<string, unknown[]> = {
    url: ['http://127.0.0.1:8080/b', 'http://127.0.0.1:8081/a'],
    name: ['Other & Sons'],
    amount_min: [2_000, 3_000],
    amount_max: [40_000, 50_000],
  };

  const valuesOf = (name: string, schema: Schema): unknown[] => {
    if (schema.anyOf) return schema.anyOf.flatMap((each) => valuesOf(name, each));
    if (schema.type === 'null') return [null];
    if (known[name]) return known[name];
    if (schema.enum) return schema.enum;
    if (schema.type === 'boolean') return [true, false];
    if (schema.type === 'integer') return [schema.minimum ?? 0, (schema.minimum ?? 0) + 2];
    if (schema.type === 'string') return ['some words', ''];
    if (schema.type === 'array') {
      const [first, ...others] = valuesOf(name, schema.items!);
      return [[first], others];
    }
    throw new Error(`no value for ${name}: ${JSON.stringify(schema)}`);
  };

  const document = operatorsDocument() as unknown as {
    paths: Record<string, Record<string, { requestBody: { content: Record<string, { schema: Schema }> } }>>;
    components: { schemas: Record<string, Schema> };
  };
  const resolved = (schema: Schema): Schema =>
    schema.$ref ? document.components.schemas[schema.$ref.split('/').at(-1)!]! : schema;
  const patches = Object.entries(document.paths).filter(([, { patch }]) => patch);

  const fieldsOf = (path: string): [string, Schema][] => {
    const { schema } = document.paths[path]!.patch!.requestBody.content['application/json']!;
    return Object.entries(resolved(schema).properties!).filter(([name]) => name !== 'reason');
  };

  const lastAudit = (target: string) =>
    test.service.wired.db.collection('audit').find({ target }).sort({ _id: -1 }).limit(1).next();

  it('there are routes that change something', () => {
    expect(patches.map(([path]) => path).sort()).to.deep.equal(Object.keys(made).sort());
  });

  for (const [path] of patches) {
    for (const [name, schema] of fieldsOf(path)) {
      const values = valuesOf(name, resolved(schema));
      it(`PATCH ${path}: ${name} is what is answered, stored and audited, for ${JSON.stringify(values)}`, async () => {
        const id = await made[path]!();
        const at = path.replace('{id}', id);
        let before = (await test.call('GET', at)).json[name];
        // A null comes last once more: it takes away what was set.
        for (const value of [...values, ...(values.includes(null) ? [values[0], null] : [])]) {
          const patched = await test.call('PATCH', at, { body: { [name]: value, reason: 'for a test' } });
          expect(patched.status, patched.text).to.equal(200);
          expect(patched.json[name], 'the answer').to.deep.equal(value);
          expect((await test.call('GET', at)).json[name], 'what is read').to.deep.equal(value);
          const line = await lastAudit(id);
          expect(line?.before?.[name], 'the audit’s before').to.deep.equal(before);
          expect(line?.after?.[name], 'the audit’s after').to.deep.equal(value);
          before = value;
        }
      });
    }
  }
});
