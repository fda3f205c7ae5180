import { expect } from 'chai';
import { archiveKinds, fates } from '../../src/archive/archive.ts';
import { mongoCollectionSpecs } from '../../src/stores.ts';

describe('retention', () => {
  const names = mongoCollectionSpecs.map(({ name }) => name);

  it('is stated for each MongoDB collection, and for none that there is not', () => {
    const said = 'say in src/archive/retention.ts how long it is kept, and why';
    expect(Object.keys(fates).sort(), said).to.deep.equal([...names].sort());
  });

  it('says that exactly those remove themselves which have an index for it', () => {
    const expiring = mongoCollectionSpecs.flatMap(({ name, indexes = [] }) =>
      indexes.some(({ expireAfterSeconds }) => expireAfterSeconds !== undefined) ? [name] : [],
    );
    const said = Object.entries(fates).flatMap(([name, fate]) => ('expires' in fate ? [name] : []));
    expect(said.sort()).to.deep.equal(expiring.sort());
  });

  it('has something to archive of each kind', () => {
    const archived = Object.values(fates).flatMap((fate) => ('archived' in fate ? [fate.archived] : []));
    expect([...new Set(archived)].sort()).to.deep.equal([...archiveKinds].sort());
  });
});
