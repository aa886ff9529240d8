import { createHash } from 'node:crypto'
import { base32, rfc3339 } from '@plat/core'
import type { StoredAccount } from './accounts.ts'

/** Characters of the name behind its prefix: 130 bits of a hash. */
const NAME_CHARS = 26

/** The ConnectedAccount that mirrors an account in the cluster. */
export interface MirroredAccount {
  readonly namespace: string
  readonly name: string
  readonly spec: Readonly<Record<string, unknown>>
}

/** Public members of an account, without tokens. */
export function mirroredAccount({ id, account }: StoredAccount, namespace: string): MirroredAccount {
  const { user, provider, scopes, expiresAt } = account
  const name = base32(createHash('sha256').update(id).digest()).slice(0, NAME_CHARS)
  const ends = expiresAt === null ? {} : { expiresAt: rfc3339(expiresAt) }
  return { namespace, name: `account-${name}`, spec: { user, provider, scopes, ...ends } }
}
