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
import type { Tenancy } from '../../call/index.ts'
import { ABOUT, type EvidenceMaker } from './make.ts'
import type { EvidenceStore } from './store.ts'

/** Evidence objects of one ledger. */
export interface LedgerEvidence {
  readonly maker: EvidenceMaker
  readonly store: EvidenceStore
}

export interface EvidenceRoutesOptions {
  /** Returns the objects of the ledger of a tenant, or null; empty: the fleet's. */
  readonly of: (tenant: string) => LedgerEvidence | null
  readonly tenancy: Tenancy
  readonly ledgers: Ledgers
  readonly log: Log
}

/** A request that names an object. */
interface Named {
  readonly params: unknown
  readonly query: unknown
}

const text = Type.Optional(Type.String({ minLength: 1, maxLength: 2048 }))

/** Body of `POST /v1/evidence`: the selection, by default all records. */
export const requestSchema = Type.Object(
  { namespace: text, agent: text, session: text, call: text, kind: text, from: text, to: text },
  { additionalProperties: false },
)

/** `/v1/evidence`: evidence objects for auditors, made on demand. */
export function createEvidenceRoutes({ of, tenancy, ledgers, log }: EvidenceRoutesOptions): AdminRoutes {
  const evidenceOf = (tenant: string): LedgerEvidence => {
    const evidence = of(tenant)
    if (evidence !== null) return evidence
    throw new AdminError('not_found', 'there is no such tenant, or you have no role in it')
  }
  const found = async ({ params, query }: Named, caller: Caller) => {
    const tenant = caller.tenant(query)
    const { store } = evidenceOf(tenant)
    const head = await store.head(parameter(params, 'id'))
    if (head !== null && caller.sees(head.about.namespace ?? null, tenant)) return { head, store }
    throw new AdminError('not_found', 'there is no evidence object with this id')
  }
  return {
    mount(context) {
      context.on('POST /v1/evidence', async (request, reply, caller) => {
        const selection = bodyAs(requestSchema, request.body ?? {})
        const { namespace = null } = selection
        const isElsewhere = queried(request.query, 'tenant') !== null
        const tenant = namespace === null || isElsewhere ? caller.tenant(request.query) : tenancy.of(namespace)
        if (namespace === null && !caller.sees(null, tenant)) {
          throw new AdminError('invalid_request', 'namespace: must be one in which you have the role auditor')
        }
        caller.demand(namespace, tenant)
        const { maker } = evidenceOf(tenant)
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
          .of(tenant)
          .append({ ...record, id, sha256, from, to, records, about })
          .catch((error: unknown) => log.error({ id, error: reasonOf(error) }, 'evidence could not be recorded'))
        reply.code(201)
        return { ...viewOf(head), sha256, bytes }
      })
      context.on('GET /v1/evidence', async ({ query }, _reply, caller) => {
        const tenant = caller.tenant(query)
        return listed(evidenceOf(tenant).store, query, (namespace) => caller.sees(namespace, tenant))
      })
      context.on('GET /v1/evidence/:id', async (request, _reply, caller) => viewOf((await found(request, caller)).head))
      context.on('GET /v1/evidence/:id/object', async (request, reply, caller) => {
        const {
          head: { id },
          store,
        } = await found(request, caller)
        reply.header('content-disposition', `attachment; filename="${id}.evidence"`)
        return reply.type('application/jsonl').send(await store.bytes(id))
      })
    },
  }
}

/** Reads heads until the page is full: a caller of one namespace may see few of many. */
async function listed(store: EvidenceStore, query: unknown, sees: (namespace: string | null) => boolean) {
  const limit = limitOf(query)
  const cursor = queried(query, 'cursor')
  const ids = (await store.ids()).filter((id) => cursor === null || id < cursor)
  const items: ReturnType<typeof viewOf>[] = []
  for (const id of ids) {
    if (items.length === limit) return { items, nextCursor: items.at(-1)?.id ?? null }
    const head = await store.head(id)
    if (head !== null && sees(head.about.namespace ?? null)) items.push(viewOf(head))
  }
  return { items, nextCursor: null }
}

function viewOf({ id, at, by, about, from, to, records, anchor }: EvidenceHead) {
  return { id, at, by, about, from, to, records, anchored: anchor !== null }
}
