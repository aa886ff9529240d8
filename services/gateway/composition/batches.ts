import type { Rec } from '@plat/ledger'
import type { Hold } from '@plat/state'
import { BATCH_USAGE, type Call, type Denial, type Usage } from '../call/index.ts'
import { pricingSlot } from '../decide/budgets/index.ts'
import type { BatchStore } from '../planes/model/index.ts'
import type { BatchCharging, BatchUsed, StoredBatch } from '../targets/models/index.ts'
import type { Callers } from './callers.ts'
import type { Decisions } from './decide.ts'
import type { startSessions } from './operate.ts'
import type { Shared } from './shared.ts'
import type { Targets } from './targets.ts'

/** Counts and records what batches have used. */
export function batchCharging(
  { ids, clock, snapshots, tenancy }: Shared,
  {
    ledgers,
    budgets,
    sessions,
  }: Pick<Callers & Decisions, 'ledgers' | 'budgets'> & { readonly sessions: ReturnType<typeof startSessions> },
): BatchCharging {
  const { limits, charging } = budgets
  return {
    limits,
    async settle(batch, used, hold) {
      const ledger = ledgers.of(batch.tenant)
      const shared = sharedMembers(ids.uuid(), batch)
      if (hold !== null) await ledger.append({ kind: 'intent', ...shared, holds: hold.items.map(heldItem) })
      const spent = spentOf(used, hold)
      const held = hold?.items.find(({ unit }) => unit === 'micros')
      const costMicros = held === undefined ? used.costMicros : (spent.get(held.key) ?? 0)
      const { currency, id: priceId } = snapshots.current.get(pricingSlot)
      const record: Rec = {
        kind: 'outcome',
        ...shared,
        result: 'completed',
        status: 200,
        ...(used.usage !== null && { usage: inOrder(used.usage) }),
        usageSource: used.usage === null ? 'none' : 'reported',
        costMicros,
        ...(costMicros > 0 && { currency, priceId }),
        ...(hold !== null && { settled: Object.fromEntries(spent) }),
      }
      // Settles and records in one turn of the event loop: totals are saved in between.
      const settling = hold?.settle(spent)
      const recorded = ledger.append(record)
      if (costMicros > 0) charging.metered(costMicros)
      sessions.see(record, clock.now(), tenancy.isOn ? batch.tenant : '')
      await settling
      await recorded
    },
  }
}

function spentOf({ usage, costMicros }: BatchUsed, hold: Hold | null): ReadonlyMap<string, number> {
  const spent = new Map<string, number>()
  for (const { key, unit, amount } of hold?.items ?? []) {
    const used = unit === 'micros' ? costMicros : (usage?.prompt ?? 0) + (usage?.completion ?? 0)
    spent.set(key, usage === null ? amount : used)
  }
  return spent
}

function sharedMembers(call: string, batch: StoredBatch): Omit<Rec, 'kind'> {
  const { session, namespace, agent, user, jti, server, route, model, id, requests, sha256 } = batch
  return {
    ...{ call, session, namespace, agent, jti, op: BATCH_USAGE, server, route, model, parent: batch.call },
    ...(user !== null && { user }),
    batch: { id, requests, sha256 },
  }
}

function heldItem({ amount, cap, key, unit, window }: Hold['items'][number]) {
  return { amount, cap, key, unit, window }
}

function inOrder({ cachedRead, cachedWrite, completion, prompt, reasoning }: Usage) {
  return { cachedRead, cachedWrite, completion, prompt, reasoning }
}

/** Owners and holds of batches. */
export function batchStore({
  batches,
  stored,
  taint,
  budgets,
}: Targets & Pick<Decisions, 'budgets'>): BatchStore<StoredBatch> {
  return {
    labelsOf: (caller) => taint.labelsOf(caller),
    async created(call, storing, id) {
      const batch = storedBatch(call, storing, id)
      const denial = await stored.keepBatch(storing, id)
      if (denial !== null) return denial
      const refused = await batches.created(batch)
      if (refused !== null) await stored.releaseBatch(storing.account, id)
      return refused
    },
    async results(batch, storing, files) {
      const labels = [...new Set([...storing.labels, ...(batch?.labels ?? [])])]
      for (const file of files) {
        const denial: Denial | null = await stored.keepResults({ ...storing, labels }, file)
        if (denial !== null) return denial
      }
      return batch === null ? null : batches.results(batch, files)
    },
    find: (account, id) => batches.find(account, id),
    ofFile: (account, file) => batches.ofFile(account, file),
    price: ({ priced, options }, usage) => budgets.batchPrice(priced, options, usage),
    settle: (batch, used) => batches.settle(batch, used),
    deleted: (account, id) => stored.releaseBatch(account, id),
  }
}

function storedBatch(
  { id: call, body, facts: { identity, target }, receivedAt }: Call<'identity' | 'target'>,
  { account, labels }: { readonly account: string; readonly labels: readonly string[] },
  id: string,
): StoredBatch {
  const batch = body?.batch
  if (batch === undefined) throw new Error('the requests of the batch were not judged')
  const { tenant, namespace, agent, session, user, jti } = identity
  const { model, priced, options, count, sha256, holds } = batch
  return {
    ...{ account, id, at: receivedAt, call, jti, tenant, namespace, agent, session, user },
    ...{ route: target.key, server: target.server, model, options: [...options], requests: count, sha256 },
    priced: { key: priced.key, scopes: [...priced.scopes] },
    labels: [...labels],
    holds: holds.flatMap(({ key, window, amount, unit }) => (unit === 'calls' ? [] : [{ key, window, amount, unit }])),
  }
}
