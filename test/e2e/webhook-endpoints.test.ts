import { expect } from 'chai';
import { type DnsReply, type DnsServer, startDnsServer } from '../support/dns-server.ts';
import type { TestMerchant, TestService } from '../support/service.ts';
import { type Receiver, startReceiver, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** CONTRACT 13.1: endpoints are publicly reachable, private addresses are refused, live ones use https. */
describe('webhook endpoints', () => {
  const names: Record<string, DnsReply> = {
    'hooks.shop.example.com': ['93.184.216.34'],
    'six.shop.example.com': ['2606:2800:220:1::1'],
    'rebinding.example.com': ['93.184.216.34'],
    'inside.example.com': ['10.1.2.3'],
    'metadata.example.com': ['169.254.169.254'],
    'loopback.example.com': ['127.0.0.1'],
    'mixed.example.com': ['93.184.216.34', '192.168.1.1'],
    'mapped.example.com': ['::ffff:10.0.0.1'],
    'nowhere.example.com': 'nxdomain',
  };
  let test: TestService;
  let dns: DnsServer;
  let merchant: TestMerchant;
  let receiver: Receiver;

  before(async () => {
    dns = await startDnsServer(({ name, type }) => {
      const reply = names[name] ?? 'nxdomain';
      if (typeof reply === 'string') return reply;
      return reply.filter((address) => address.includes(':') === (type === 'AAAA'));
    });
    // As it is where nobody asked for exceptions.
    test = await startTestService({ WEBHOOK_ALLOW_CIDRS: '', WEBHOOK_DNS_SERVERS: dns.address });
    merchant = await test.merchant();
    receiver = await startReceiver();
  });

  after(async () => {
    await test.stop();
    await receiver.close();
    await dns.close();
  });

  const register = (url: string, mode = 'test', more = {}) =>
    test.call('POST', `/admin/merchants/${merchant.id}/endpoints`, {
      body: { mode, url, reason: 'asked for', ...more },
    });
  const list = async () => (await test.call('GET', `/admin/merchants/${merchant.id}/endpoints`)).json.data;

  const refused: Record<string, string[]> = {
    'an address of this machine': [
      'http://127.0.0.1:8080/hook',
      'http://127.1:8080/hook',
      'http://2130706433:8080/hook',
      'http://0x7f000001:8080/hook',
      'http://0177.0.0.1:8080/hook',
      'http://0.0.0.0:8080/hook',
      'http://[::1]:8080/hook',
      'http://[::]:8080/hook',
      'http://[::ffff:127.0.0.1]:8080/hook',
      'http://localhost:8080/hook',
    ],
    'a private or internal address': [
      'https://10.0.0.1/hook',
      'https://172.16.0.1/hook',
      'https://192.168.0.1/hook',
      'https://100.64.0.1/hook',
      'https://169.254.169.254/latest/meta-data',
      'https://168.63.129.16/hook',
      'https://[fc00::1]/hook',
      'https://[fe80::1]/hook',
      'https://[64:ff9b::a00:1]/hook',
      'https://[2002:a00:1::]/hook',
    ],
    'an address that is nobody’s': ['https://224.0.0.1/', 'https://255.255.255.255/', 'https://203.0.113.9/'],
    'a name that leads inside': [
      'https://inside.example.com/hook',
      'https://metadata.example.com/hook',
      'https://loopback.example.com/hook',
      'https://mixed.example.com/hook',
      'https://mapped.example.com/hook',
    ],
    'a name that is not public': [
      'https://intranet/hook',
      'https://printer.local/hook',
      'https://db.internal/hook',
      'https://kubernetes.default.svc/hook',
      'https://hooks.shop.example.com./hook',
    ],
    'a name that leads nowhere': ['https://nowhere.example.com/hook'],
    'a port that is not for webhooks': [
      'https://hooks.shop.example.com:22/',
      'http://hooks.shop.example.com:25/',
    ],
    'what is no web address': [
      'ftp://hooks.shop.example.com/',
      'file:///etc/passwd',
      'hooks.shop.example.com/hook',
      'https://user:secret@hooks.shop.example.com/',
      'https://hooks.shop.example.com/#part',
      'https://hooks.shop.example.com/a b',
      'https://',
    ],
  };

  for (const [what, urls] of Object.entries(refused)) {
    it(`refuses ${what}, in test and in live mode, and says so without any address`, async () => {
      for (const url of urls) {
        for (const mode of ['test', 'live']) {
          const { status, json } = await register(url, mode);
          expect([status, json.error.code, json.error.param], url).to.deep.equal([
            400,
            'parameter_invalid',
            'url',
          ]);
          expect(json.error.message, url).to.not.match(/10\.1\.2\.3|169\.254|192\.168|127\.0\.0\.1|::ffff/);
        }
      }
      expect(await list()).to.deep.equal([]);
    });
  }

  it('tells a name that leads inside from one that leads nowhere', async () => {
    const inside = await register('https://mixed.example.com/hook');
    expect(inside.json.error.message).to.include('private or internal').and.to.include('publicly reachable');
    const nowhere = await register('https://nowhere.example.com/hook');
    expect(nowhere.json.error.message).to.include('cannot be resolved');
  });

  it('in live mode refuses everything but https on 443 and 8443', async () => {
    const urls = ['http://hooks.shop.example.com/', 'http://hooks.shop.example.com:8443/'];
    for (const url of [...urls, 'https://hooks.shop.example.com:3000/']) {
      const { status, json } = await register(url, 'live');
      expect([status, json.error.param], url).to.deep.equal([400, 'url']);
    }
    for (const url of ['https://hooks.shop.example.com/hook?shop=7', 'https://six.shop.example.com:8443/']) {
      expect((await register(url, 'live')).status, url).to.equal(201);
    }
  });

  it('are sixteen at most, however many are registered at once', async () => {
    const other = await test.merchant();
    const path = `/admin/merchants/${other.id}/endpoints`;
    const one = (n: number) =>
      test.call('POST', path, {
        body: { mode: 'test', url: `https://hooks.shop.example.com/${n}`, reason: 'asked for' },
      });
    const statuses = (await Promise.all(Array.from({ length: 40 }, (_, n) => one(n)))).map(
      ({ status }) => status,
    );
    expect(statuses.filter((status) => status === 201)).to.have.length(16);
    expect(statuses.filter((status) => status === 409)).to.have.length(24);
    expect((await test.call('GET', path)).json.data).to.have.length(16);
  });

  it('in test mode takes http as well, and ports from 1024 up', async () => {
    for (const url of ['http://hooks.shop.example.com/', 'http://hooks.shop.example.com:3000/hook']) {
      expect((await register(url)).status, url).to.equal(201);
    }
  });

  it('shows the signing secret once, when it is registered', async () => {
    const { json } = await register('https://hooks.shop.example.com/once');
    expect(json.secret).to.match(/^whsec_/);
    const { text } = await test.call('GET', `/admin/endpoints/${json.id}`);
    expect(text).to.not.include('whsec_').and.to.not.include(json.secret.slice(6));
    expect(JSON.stringify(await list())).to.not.include('whsec_');
    const { db } = test.service.wired;
    const stored = await db.collection<{ _id: string }>('endpoints').findOne({ _id: json.id });
    expect(JSON.stringify(stored)).to.not.include(json.secret.slice(6));
  });

  it('checks the address of a change as that of a registration', async () => {
    const { json } = await register('https://hooks.shop.example.com/change');
    const change = (url: string) =>
      test.call('PATCH', `/admin/endpoints/${json.id}`, { body: { url, reason: 'moved' } });
    expect((await change('https://inside.example.com/')).json.error.param).to.equal('url');
    const changed = await change('https://hooks.shop.example.com/moved');
    expect([changed.status, changed.json.url]).to.deep.equal([200, 'https://hooks.shop.example.com/moved']);
  });

  it('checks the address at every dial again: a name that has moved inside since is not followed', async () => {
    const other = await test.merchant();
    const port = new URL(receiver.url).port;
    const endpoint = await test.endpoint(other.id, `http://rebinding.example.com:${port}/hook`);
    names['rebinding.example.com'] = ['127.0.0.1'];
    await other.create({ phone: '255700000004' });
    const delivery = await until(async () => {
      const { json } = await test.call('GET', `/admin/deliveries?endpoint=${endpoint.id}`);
      return json.data[0]?.state === 'waiting' && json.data[0];
    });
    expect(delivery.last_reason).to.equal('blocked_address');
    expect(receiver.received).to.have.length(0);
  });

  it('are at most sixteen per merchant and mode', async () => {
    const many = await test.merchant();
    const add = (mode: string) =>
      test.call('POST', `/admin/merchants/${many.id}/endpoints`, {
        body: { mode, url: 'https://hooks.shop.example.com/', reason: 'asked for' },
      });
    for (let n = 0; n < 16; n += 1) expect((await add('test')).status).to.equal(201);
    const refusal = await add('test');
    expect([refusal.status, refusal.json.error.code]).to.deep.equal([409, 'action_not_allowed']);
    expect((await add('live')).status).to.equal(201);
    const { json } = await test.call('GET', `/admin/merchants/${many.id}/endpoints`);
    const gone = json.data.find(({ mode }: { mode: string }) => mode === 'test').id;
    await test.call('DELETE', `/admin/endpoints/${gone}?reason=unused`);
    expect((await add('test')).status).to.equal(201);
  });

  it('refuse types of event that do not exist', async () => {
    for (const event_types of [
      [],
      ['collection.created'],
      ['collection.failed', 'collection.failed'],
      'all',
    ]) {
      const { status, json } = await register('https://hooks.shop.example.com/', 'test', { event_types });
      expect([status, json.error.param.split('.')[0]]).to.deep.equal([400, 'event_types']);
    }
  });
});
