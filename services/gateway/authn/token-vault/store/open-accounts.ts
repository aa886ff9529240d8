import { type Ids, type PoolBound, type PoolObservers, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { JournalSpec, Journals } from '@plat/state'
import type { TokenVaultConfig } from '../config.ts'
import { decodeEvent, type VaultEvent } from './account.ts'
import { Accounts } from './accounts.ts'
import { type EnvelopeKeys, openEnvelope } from './envelope.ts'

export interface OpenAccountsOptions {
  readonly config: { readonly auditPath: string; readonly tokenVault: TokenVaultConfig }
  readonly journals: Journals
  readonly ids: Ids
  readonly log: Log
  readonly pools?: PoolObservers<'connected_accounts'>
  /** Default: keys in files only. */
  readonly keys?: EnvelopeKeys
}

/** The journal of connected accounts. Their tokens are encrypted in it. */
export function accountsJournal(config: OpenAccountsOptions['config']): JournalSpec<VaultEvent> {
  const path = config.tokenVault.storePath || `${config.auditPath}.vault.jsonl`
  return { name: 'accounts', path, decode: decodeEvent }
}

/** Connected accounts, and the end of their journal. */
export interface OpenedAccounts {
  readonly accounts: Accounts
  closeJournal(): Promise<void>
}

/** Opens the accounts. Rejects if a key or the journal is unusable, or if accounts are sealed with an unlisted key. */
export async function openAccounts({
  config,
  journals,
  ids,
  log,
  pools,
  keys,
}: OpenAccountsOptions): Promise<OpenedAccounts> {
  const envelope = await openEnvelope(config.tokenVault, ids, keys)
  const journal = await journals.open(accountsJournal(config))
  const onFault = (error: unknown) => log.error({ error: reasonOf(error) }, 'the journal of the token vault failed')
  const observer = pools?.of('connected_accounts')
  const { catchUp } = journals
  const onRefused = (bound: PoolBound) => observer?.refused(bound)
  const accounts = new Accounts({ journal, catchUp, envelope, onFault, onRefused })
  observer?.watch(() => accounts.size)
  try {
    await accounts.open()
    return { accounts, closeJournal: () => journal.close() }
  } catch (error) {
    await journal.close()
    throw error
  }
}
