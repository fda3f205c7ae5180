import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { type Member, startMember } from './member.ts';
import { until } from './until.ts';

/** Three mongods that stand in for each other, as production has them: they know each other by a key file. */
export interface ReplicaSet {
  /** For MONGODB_URI: of the service, which may use its own database and no other. */
  uri: string;
  members: readonly Member[];
  /** The member that takes writes now; undefined while there is none. */
  primary(): Promise<Member | undefined>;
  /** Runs a command as the set's administrator, on the primary or on this member. */
  command(what: object, at?: Member): Promise<unknown>;
  close(): Promise<void>;
}

const name = 'rs0';
const admin = { username: 'admin', password: randomBytes(12).toString('hex') };
const service = { username: 'kusanya', password: 'p@ss/word of the service' };
/** What OPERATING.md tells to give the service. */
const serviceRoles = ['readWrite', 'dbAdmin'];

/** `electionMs`: members that hear nothing of the primary for so long elect another; MongoDB's default is 10,000. */
export async function openReplicaSet(options: { database: string; electionMs: number }): Promise<ReplicaSet> {
  const key = randomBytes(96).toString('base64');
  const start = () =>
    startMember('mongod', (port, dir) => {
      mkdirSync(join(dir, 'db'));
      writeFileSync(join(dir, 'key'), key, { mode: 0o600 });
      return [
        ...['--port', String(port), '--bind_ip', '127.0.0.1', '--nounixsocket', '--dbpath', join(dir, 'db')],
        ...['--replSet', name, '--keyFile', join(dir, 'key')],
        ...['--oplogSize', '256', '--wiredTigerCacheSizeGB', '0.25'],
        ...['--setParameter', 'diagnosticDataCollectionEnabled=false'],
        ...['--setParameter', 'transactionLifetimeLimitSeconds=10'],
      ];
    });
  const members = await Promise.all([start(), start(), start()]);
  await found(members, options.electionMs);
  const hosts = members.map(hostOf).join();
  const client = await new MongoClient(`mongodb://${hosts}/?replicaSet=${name}`, { auth: admin }).connect();
  const roles = serviceRoles.map((role) => ({ role, db: options.database }));
  await client.db('admin').command({ createUser: service.username, pwd: service.password, roles });
  const words = `${service.username}:${encodeURIComponent(service.password)}`;
  return {
    uri: `mongodb://${words}@${hosts}/${options.database}?replicaSet=${name}&authSource=admin`,
    members,
    primary: async () => {
      for (const member of members) if ((await helloOf(member))?.isWritablePrimary) return member;
      return undefined;
    },
    command: async (what, at) => {
      if (!at) return client.db('admin').command(what);
      const one = new MongoClient(`mongodb://${hostOf(at)}/?directConnection=true`, { auth: admin });
      try {
        return await one.db('admin').command(what);
      } finally {
        await one.close();
      }
    },
    close: async () => {
      await client.close();
      await Promise.all(members.map((member) => member.close()));
    },
  };
}

/** Founds the set and makes its administrator, which a server without any lets whoever is on its machine do. */
async function found(members: readonly Member[], electionTimeoutMillis: number): Promise<void> {
  const [first] = members;
  const client = new MongoClient(`mongodb://${hostOf(first!)}/?directConnection=true`);
  try {
    const set = {
      ...{ _id: name, settings: { electionTimeoutMillis } },
      members: members.map((member, _id) => ({ _id, host: hostOf(member) })),
    };
    await client.db('admin').command({ replSetInitiate: set });
    const isPrimary = await until(async () => (await helloOf(first!))?.isWritablePrimary, 60_000);
    if (!isPrimary) throw new Error('the replica set has no primary');
    const { username, password } = admin;
    await client.db('admin').command({ createUser: username, pwd: password, roles: ['root'] });
  } finally {
    await client.close();
  }
}

async function helloOf(member: Member): Promise<{ isWritablePrimary: boolean } | undefined> {
  const waits = { serverSelectionTimeoutMS: 500, connectTimeoutMS: 500, socketTimeoutMS: 500 };
  const client = new MongoClient(`mongodb://${hostOf(member)}/?directConnection=true`, waits);
  try {
    return (await client.db('admin').command({ hello: 1 })) as { isWritablePrimary: boolean };
  } catch {
    return undefined; // it is down or frozen
  } finally {
    await client.close();
  }
}

const hostOf = ({ port }: Member) => `127.0.0.1:${port}`;
