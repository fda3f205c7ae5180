import type { KeyScope, Principal } from '../principal.ts';
import { apiKeyInvalid, apiKeyMissing, merchantSuspended, permissionDenied } from './errors.ts';
import type { OperatorPrincipal, Role } from './route.ts';

/** Who is behind a secret; undefined for every secret that opens nothing, whatever the reason. */
export type Authenticate<Who> = (secret: string) => Promise<Who | undefined> | Who | undefined;

/** Longer ones are not ours; refused before anything is computed from them. */
const tokenMaxChars = 256;

/** The principal of `Authorization: Bearer <API_KEY>` (CONTRACT 2.1). */
export async function authenticateMerchant(
  authorization: string | undefined,
  authenticate: Authenticate<Principal>,
): Promise<Principal> {
  const principal = await authenticate(bearerToken(authorization));
  if (!principal) throw apiKeyInvalid();
  return principal;
}

/** After the rate limit: a suspended merchant's requests count like everybody's. For all that is no reading (CONTRACT 2.6). */
export function refuseSuspended({ merchant }: Principal): void {
  if (merchant.suspended) throw merchantSuspended();
}

/** What helps to test is for test keys (CONTRACT 10.3). */
export function refuseLive({ mode }: Principal): void {
  if (mode === 'test') return;
  throw permissionDenied('Test helpers take a test key (kusanya_test_sk_…). Nothing was changed.');
}

/** What moves the merchant's money takes a key that was given the scope (CONTRACT 2.9). */
export function refuseUnscoped({ scopes }: Principal, scope: KeyScope): void {
  if (scopes.includes(scope)) return;
  throw permissionDenied(
    `This key has not the scope \`${scope}\`: ask the operator for one that has it. Nothing was created or changed.`,
  );
}

/** The operator of `Authorization: Bearer <token>`, whose role must reach `role`. */
export async function authenticateOperator(
  authorization: string | undefined,
  authenticate: Authenticate<OperatorPrincipal>,
  role: Role,
): Promise<OperatorPrincipal> {
  const operator = await authenticate(bearerToken(authorization));
  if (!operator) throw apiKeyInvalid();
  if (!roleAllows(operator.role, role)) throw permissionDenied();
  return operator;
}

const rank: Readonly<Record<Role, number>> = { viewer: 0, operator: 1, admin: 2 };

/** Each role includes the ones before it: viewer, operator, admin. */
export function roleAllows(role: Role, needed: Role): boolean {
  return rank[role] >= rank[needed];
}

function bearerToken(authorization: string | undefined): string {
  const match = authorization === undefined ? null : /^bearer(?: (.*))?$/i.exec(authorization);
  const token = match?.[1]?.trim();
  if (!token) throw apiKeyMissing();
  if (token.length > tokenMaxChars) throw apiKeyInvalid();
  return token;
}
