import { reasonOf } from '@plat/core'
import { checkpointsPath, lastCheckpoint, ledgerPage, type NoReceipt, newestFirst, receiptBeside } from '@plat/ledger'
import type { Log } from '@plat/process'
import {
  AdminError,
  type AdminRoutes,
  type Caller,
  limitOf,
  momentIn,
  parameter,
  queried,
  seqIn,
} from '../../admin/index.ts'
import type { DamagedSegment } from './background.ts'
import type { Keyring } from './keyring.ts'

export interface AuditRoutesOptions {
  readonly path: string
  /** The last durable record. */
  readonly head: () => { readonly seq: number; readonly hash: string }
  /** Sealed segments that do not verify, as far as they were found. */
  readonly damaged: readonly DamagedSegment[]
  readonly keyring: Keyring
  readonly log: Log
}

/** Members of a record that a query can filter by. */
const FILTERS = ['namespace', 'agent', 'session', 'call', 'kind'] as const

/** `/v1/audit`: head, records, proofs, checkpoints and their public keys (admin API shapes). */
export function createAuditRoutes({ path, head, damaged, keyring, log }: AuditRoutesOptions): AdminRoutes {
  return {
    mount(context) {
      context.on('GET /v1/audit/head', async () => {
        const { seq, hash } = head()
        return { seq, hash, checkpoint: (await lastCheckpoint(path))?.rec ?? null, damagedSegments: damaged }
      })
      context.on('GET /v1/audit/records', async ({ query }, _reply, caller) => {
        const cursor = queried(query, 'cursor')
        const from = cursor === null ? momentIn(queried(query, 'from'), 'from') : seqIn(cursor, 'cursor')
        const range = { from: from ?? 0, to: momentIn(queried(query, 'to'), 'to') }
        const { items, next } = await ledgerPage(path, {
          ...range,
          limit: limitOf(query),
          wants: wanted(query, caller),
        })
        return { items, nextCursor: next === null ? null : String(next) }
      })
      context.on('GET /v1/audit/proof/:seq', async ({ params }, _reply, caller) => {
        const seq = seqIn(parameter(params, 'seq'), 'seq')
        const receipt = await receiptBeside(path, seq).catch((error: unknown) => {
          log.error({ seq, error: reasonOf(error) }, 'a proof could not be made')
          throw new AdminError('state_unavailable', 'the tree of the ledger cannot be read now')
        })
        if (typeof receipt === 'string') throw new AdminError('not_found', WHY_NOT[receipt])
        if (!caller.sees(namespaceOf(receipt.line))) throw new AdminError('not_found', WHY_NOT['no record'])
        return receipt
      })
      context.on('GET /v1/audit/checkpoints', async ({ query }) => {
        const cursor = queried(query, 'cursor')
        const before = cursor === null ? null : seqIn(cursor, 'cursor')
        const { items, next } = await newestFirst(checkpointsPath(path), limitOf(query), before)
        return { items, nextCursor: next === null ? null : String(next) }
      })
      context.on('GET /v1/audit/jwks', () => ({ keys: keyring.published() }))
    },
  }
}

const WHY_NOT: Readonly<Record<NoReceipt, string>> = {
  'no record': 'there is no record of this number',
  'no checkpoint': 'no checkpoint covers this record yet: auditCheckpointIntervalSeconds says when the next one does',
}

/** Records of a namespace are visible there; others, such as those of checkpoints, to callers with a role everywhere. */
function wanted(query: unknown, caller: Caller): (rec: Readonly<Record<string, unknown>>) => boolean {
  const filters = FILTERS.map((name) => [name, queried(query, name)] as const).filter(([, value]) => value !== null)
  return (rec) => caller.sees(ofNamespace(rec)) && filters.every(([name, value]) => rec[name] === value)
}

function ofNamespace({ namespace }: Readonly<Record<string, unknown>>): string | null {
  return typeof namespace === 'string' ? namespace : null
}

function namespaceOf(line: string): string | null {
  return ofNamespace(JSON.parse(line).rec)
}
