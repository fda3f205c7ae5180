/** The documented rules of each field, and the code that a breach of it is answered with. */
export interface FieldRule {
  name: string;
  pattern: RegExp;
  /** The result code of a value that does not match. */
  code: string;
}

const country: FieldRule = { name: 'input_Country', pattern: /^TZN$/, code: 'INS-998' };
const provider: FieldRule = {
  name: 'input_ServiceProviderCode',
  pattern: /^[0-9A-Za-z]{4,12}$/,
  code: 'INS-13',
};
const conversation: FieldRule = {
  name: 'input_ThirdPartyConversationID',
  pattern: /^[0-9a-zA-Z \w+]{1,40}$/,
  code: 'INS-28',
};

export const pushRules: readonly FieldRule[] = [
  { name: 'input_Amount', pattern: /^\d*\.?\d+$/, code: 'INS-15' },
  { name: 'input_CustomerMSISDN', pattern: /^[0-9]{12,14}$/, code: 'INS-2051' },
  country,
  { name: 'input_Currency', pattern: /^TZS$/, code: 'INS-26' },
  provider,
  { name: 'input_TransactionReference', pattern: /^[0-9a-zA-Z \w+]{1,20}$/, code: 'INS-17' },
  conversation,
  // Letters, digits and spaces: the documented class also takes `_` and `+`, but a `-` gave INS-30 [field].
  { name: 'input_PurchasedItemsDesc', pattern: /^[0-9a-zA-Z \w+]{1,256}$/, code: 'INS-30' },
];

/** Of a payout: as a push, but for the name of its description. */
export const payoutRules: readonly FieldRule[] = pushRules.map((rule) =>
  rule.name === 'input_PurchasedItemsDesc' ? { ...rule, name: 'input_PaymentItemsDesc' } : rule,
);

export const queryRules: readonly FieldRule[] = [
  {
    name: 'input_QueryReference',
    pattern: /^(?:[A-Za-z0-9]{10,20}|[A-Za-z0-9]{1,9}|[A-Za-z0-9]{21,32})$/,
    code: 'INS-21',
  },
  provider,
  conversation,
  country,
];

export const reversalRules: readonly FieldRule[] = [
  { name: 'input_TransactionID', pattern: /^[0-9a-zA-Z]{1,20}$/, code: 'INS-18' },
  { name: 'input_ReversalAmount', pattern: /^\d*\.?\d+$/, code: 'INS-15' },
  country,
  provider,
  conversation,
];

/** HTTP status and text of every documented code. */
export const codeTable: Readonly<Record<string, readonly [httpStatus: number, text: string]>> = {
  'INS-0': [201, 'Request processed successfully'],
  'INS-1': [400, 'Internal Error'],
  'INS-6': [401, 'Transaction Failed'],
  'INS-9': [408, 'Request timeout'],
  'INS-10': [409, 'Duplicate Transaction'],
  'INS-13': [400, 'Invalid Shortcode Used'],
  'INS-15': [400, 'Invalid Amount Used'],
  'INS-17': [400, 'Invalid Transaction Reference. Length Should Be Between 1 and 20.'],
  'INS-18': [400, 'Invalid TransactionID Used'],
  'INS-20': [400, 'Not All Parameters Provided. Please try again.'],
  'INS-21': [400, 'Parameter validations failed. Please try again.'],
  'INS-23': [400, 'Transaction Not Found'],
  'INS-26': [400, 'Invalid Currency Used'],
  'INS-28': [400, 'Invalid ThirdPartyConversationID Used'],
  'INS-30': [400, 'Invalid Purchased Items Description Used'],
  'INS-35': [400, 'Transaction is not yours'],
  'INS-989': [400, 'Session Creation Failed'],
  'INS-990': [400, 'Customer Transaction Value Limit Breached'],
  'INS-991': [400, 'Customer Transaction Count Limit Breached'],
  'INS-992': [400, 'Multiple Limits Breached'],
  'INS-993': [400, 'Organization Transaction Count Limit Breached'],
  'INS-994': [400, 'Organization Transaction Value Limit Breached'],
  'INS-995': [400, 'API Single Transaction Limit Breached'],
  'INS-996': [400, 'API Being Used Outside Of Usage Time'],
  'INS-997': [400, 'API Not Enabled'],
  'INS-998': [400, 'Invalid Market'],
  'INS-2006': [422, 'Insufficient balance'],
  'INS-2051': [400, 'MSISDN invalid.'],
};

/** The code of the first breach; undefined when all fields are as documented. Missing ones are INS-20. */
export function breachOf(
  fields: Readonly<Record<string, unknown>>,
  rules: readonly FieldRule[],
): string | undefined {
  const isMissing = rules.some(({ name }) => typeof fields[name] !== 'string' || fields[name] === '');
  if (isMissing) return 'INS-20';
  return rules.find(({ name, pattern }) => !pattern.test(fields[name] as string))?.code;
}
