import { expect } from 'chai';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';

/** CONTRACT 2.7. */
describe('GET /v1/whoami', () => {
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService();
    merchant = await test.merchant();
  });

  after(() => test.stop());

  it('names the merchant, the mode and the key, and nothing else', async () => {
    const { status, json } = await merchant.get('/v1/whoami');
    expect(status).to.equal(200);
    expect(Object.keys(json)).to.have.members(['object', 'merchant_id', 'mode', 'key_id']);
    expect(json).to.include({ object: 'principal', merchant_id: merchant.id, mode: 'test' });
    expect(json.merchant_id).to.match(/^mer_/);
    expect(json.key_id).to.match(/^key_/);
  });

  it('tells the keys of one merchant apart, and their modes', async () => {
    for (const mode of ['test', 'live'] as const) {
      const { id, secret } = await test.issueKey(merchant.id, mode);
      const { json } = await test.call('GET', '/v1/whoami', { token: secret });
      expect(json).to.deep.equal({ object: 'principal', merchant_id: merchant.id, mode, key_id: id });
      expect(secret.startsWith(`kusanya_${mode}_sk_`)).to.equal(true);
    }
  });

  it('shows nothing of the secret', async () => {
    const { text } = await merchant.get('/v1/whoami');
    expect(text).to.not.include(merchant.key).and.to.not.include(merchant.key.slice(-10));
  });

  it('takes no parameters', async () => {
    const { status, json } = await merchant.get('/v1/whoami?verbose=1');
    expect([status, json.error.code]).to.deep.equal([400, 'parameter_unknown']);
  });

  it('needs a key', async () => {
    expect((await test.call('GET', '/v1/whoami')).status).to.equal(401);
  });
});
