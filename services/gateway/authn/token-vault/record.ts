import type { Rec } from '@plat/ledger'
import type { Owner } from './store/account.ts'

/** Ledger record of an account event, without tokens. `by`: the admin; absent for the user and the gateway. */
export function accountRecord(
  { realm, user, provider }: Owner,
  event: string,
  scopes: readonly string[],
  by?: string,
): Rec {
  return { kind: 'admin', action: `account.${event}`, user, realm, provider, scopes, by }
}
