import { reasonOf } from '@plat/core'
import type { EvidenceHead, Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import Type from 'typebox'
import {
  AdminError,
  type AdminRoutes,
  bodyAs,
  type Caller,
  limitOf,
  momentIn,
  parameter,
  queried,
} from '../../admin/index.ts'
import { ABOUT, type EvidenceMaker } from './make.ts'
import type { EvidenceStore } from './store.ts'

export interface EvidenceRoutesOptions {
  readonly maker: EvidenceMaker
  readonly store: EvidenceStore
  readonly ledgers: Ledgers
  readonly log: Log
}

const text = Type.Optional(Type.String({ minLength: 1, maxLength: 2048 }))

/** Body of `POST /v1/evidence`: the selection, by default all records. */
export const requestSchema = Type.Object(
  { namespace: text, agent: text, session: text, call: text, kind: text, from: text, to: text },
  { additionalProperties: false },
)

/** `/v1/evidence`: evidence objects for auditors, made on demand. */
export function createEvidenceRoutes({ maker, store, ledgers, log }: EvidenceRoutesOptions): AdminRoutes {
  const found = async (params: unknown, caller: Caller): Promise<EvidenceHead> => {
    const head = await store.head(parameter(params, 'id'))
    if (head !== null && caller.sees(head.about.namespace ?? null)) return head
    throw new AdminError('not_found', 'there is no evidence object with this id')
  }
  return {
    mount(context) {
      context.on('POST /v1/evidence', async (request, reply, caller) => {
        const selection = bodyAs(requestSchema, request.body ?? {})
        if (selection.namespace === undefined && !caller.sees(null)) {
          throw new AdminError('invalid_request', 'namespace: must be one in which you have the role auditor')
        }
        caller.demand(selection.namespace ?? null)
        const about = Object.fromEntries(
          ABOUT.flatMap((name) => (selection[name] === undefined ? [] : [[name, selection[name]] as const])),
        )
        const moments = { from: momentIn(selection.from ?? null, 'from'), to: momentIn(selection.to ?? null, 'to') }
        const making = maker.make({ about, ...moments, by: caller.by })
        const { head, sha256, bytes } = await making.catch((error: unknown) => {
          if (error instanceof AdminError) throw error
          log.error({ error: reasonOf(error) }, 'an evidence object could not be created')
          throw new AdminError('state_unavailable', 'the evidence cannot be made or kept now; see the log')
        })
        const { id, from, to, records } = head
        const record = { kind: 'admin', action: 'evidence.made', by: caller.by, requestId: request.id } as const
        await ledgers
          .of('')
          .append({ ...record, id, sha256, from, to, records, about })
          .catch((error: unknown) => log.error({ id, error: reasonOf(error) }, 'evidence could not be recorded'))
        reply.code(201)
        return { ...viewOf(head), sha256, bytes }
      })
      context.on('GET /v1/evidence', async ({ query }, _reply, caller) => listed(store, query, caller))
      context.on('GET /v1/evidence/:id', async ({ params }, _reply, caller) => viewOf(await found(params, caller)))
      context.on('GET /v1/evidence/:id/object', async ({ params }, reply, caller) => {
        const { id } = await found(params, caller)
        reply.header('content-disposition', `attachment; filename="${id}.evidence"`)
        return reply.type('application/jsonl').send(await store.bytes(id))
      })
    },
  }
}

/** Reads heads until the page is full: a caller of one namespace may see few of many. */
async function listed(store: EvidenceStore, query: unknown, caller: Caller) {
  const limit = limitOf(query)
  const cursor = queried(query, 'cursor')
  const ids = (await store.ids()).filter((id) => cursor === null || id < cursor)
  const items: ReturnType<typeof viewOf>[] = []
  for (const id of ids) {
    if (items.length === limit) return { items, nextCursor: items.at(-1)?.id ?? null }
    const head = await store.head(id)
    if (head !== null && caller.sees(head.about.namespace ?? null)) items.push(viewOf(head))
  }
  return { items, nextCursor: null }
}

function viewOf({ id, at, by, about, from, to, records, anchor }: EvidenceHead) {
  return { id, at, by, about, from, to, records, anchored: anchor !== null }
}
