import { type Clock, type Ids, type PoolObservers, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import { openFileJournal } from '@plat/state'
import type { TokenVaultConfig } from '../config.ts'
import { decodeEvent } from './account.ts'
import { Accounts } from './accounts.ts'
import { type EnvelopeKeys, openEnvelope } from './envelope.ts'

export interface OpenAccountsOptions {
  readonly config: { readonly auditPath: string; readonly tokenVault: TokenVaultConfig }
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly pools?: PoolObservers<'connected_accounts'>
  /** Default: keys in files only. */
  readonly keys?: EnvelopeKeys
}

/** Connected accounts, and the end of their journal. */
export interface OpenedAccounts {
  readonly accounts: Accounts
  closeJournal(): Promise<void>
}

/** Opens the accounts. Rejects if a key or the journal is unusable, or if accounts are sealed with an unlisted key. */
export async function openAccounts({
  config,
  clock,
  ids,
  log,
  pools,
  keys,
}: OpenAccountsOptions): Promise<OpenedAccounts> {
  const envelope = await openEnvelope(config.tokenVault, ids, keys)
  const path = config.tokenVault.storePath || `${config.auditPath}.vault.jsonl`
  const journal = await openFileJournal({ path, clock, decode: decodeEvent })
  const onFault = (error: unknown) => log.error({ error: reasonOf(error) }, 'the journal of the token vault failed')
  const observer = pools?.of('connected_accounts')
  const accounts = new Accounts({ journal, envelope, onFault, onRefused: (bound) => observer?.refused(bound) })
  observer?.watch(() => accounts.size)
  try {
    await accounts.open()
    return { accounts, closeJournal: () => journal.close() }
  } catch (error) {
    await journal.close()
    throw error
  }
}
