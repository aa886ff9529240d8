import type { Rec } from '@plat/ledger'
import type { Owner } from './store/account.ts'

/** What the ledger says of an account's life: never a token. `by`: an admin who did it; else its user or the gateway. */
export function accountRecord(
  { realm, user, provider }: Owner,
  event: string,
  scopes: readonly string[],
  by?: string,
): Rec {
  return { kind: 'admin', action: `account.${event}`, user, realm, provider, scopes, by }
}
