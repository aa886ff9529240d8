import { formatDuration, systemClock } from '@plat/core'
import { isSessionView } from '@plat/gateway/sessions'
import { adminList } from '../shared/admin-api.ts'
import { withoutScope } from '../shared/agent.ts'
import { findGateway, type GatewayOptions } from '../shared/gateway.ts'
import type { GatewayEnv } from '../shared/home.ts'
import { CommandError, isForPeople, type Output, plain, type WideFormat } from '../shared/output.ts'
import { printWideList } from '../shared/print.ts'
import { eventOf, groundsOf, isLedgerRecord, type LedgerRecord, targetOf, textOf } from '../shared/record.ts'

/** `plat sessions`: the sessions that have called, the most recent first. */
export async function sessionsList(
  { dir, output: format }: GatewayOptions<WideFormat>,
  output: Output,
): Promise<number> {
  const { env } = await findGateway(dir)
  const sessions = await adminList(env, '/v1/sessions', isSessionView)
  if (sessions.length === 0 && isForPeople(format)) {
    output.out('no sessions: no agent has called; start one with plat run <agent> -- <program>')
    return 0
  }
  const now = systemClock.now()
  const recent = sessions.toSorted((one, other) => (one.lastActivity < other.lastActivity ? 1 : -1))
  printWideList(output, format, recent, {
    columns: {
      session: ({ id }) => plain(id),
      calls: ({ calls }) => String(calls),
      denied: ({ denied }) => String(denied),
      last: ({ lastActivity }) => age(now - Date.parse(lastActivity)),
    },
    further: {
      user: ({ user }) => plain(user ?? '-'),
      tier: ({ tier }) => plain(tier),
      started: ({ startedAt }) => startedAt,
      pending: ({ pendingApprovals }) => String(pendingApprovals),
      spent: ({ spent }) => `${(spent.micros / 1e6).toFixed(6)} ${spent.currency}`,
      taints: ({ taints }) => plain(taints.join(',')) || '-',
    },
  })
  return 0
}

/** Whole seconds, or minutes from two minutes on. */
function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  return formatDuration((seconds < 120 ? seconds : seconds - (seconds % 60)) * 1000)
}

/**
 * `plat session`: the records of one session, in order. The table has one line for each call that has ended; a last line says whether its browser can be
 * viewed.
 * @throws CommandError if the ledger has none
 */
export async function sessionTimeline(
  { dir, id, output: format }: GatewayOptions<WideFormat> & { readonly id: string },
  output: Output,
): Promise<number> {
  const { env } = await findGateway(dir)
  const session = withoutScope(id, 'session')
  const records = await adminList(env, `/v1/sessions/${encodeURIComponent(session)}/timeline`, isLedgerRecord)
  if (records.length === 0) throw new CommandError(`the ledger has no session ${plain(session)}; see plat sessions`)
  printWideList(output, format, format === 'table' ? withoutClosedIntents(records) : records, timelineColumns)
  if (isForPeople(format)) for (const line of await viewLines(env, session)) output.out(line)
  return 0
}

/** Whether the caller may view the browsers of the sessions of this name, and where. */
async function viewLines(env: GatewayEnv, session: string): Promise<readonly string[]> {
  const name = session.split('/').at(-1) ?? session
  const listed = await adminList(env, `/v1/sessions?session=${encodeURIComponent(name)}`, isSessionView)
  const found = listed.filter((one) => one.id === session || one.session === session)
  const viewed = found.flatMap(({ id, views = [] }) => (views.length > 0 ? [{ id, views }] : []))
  if (viewed.length === 0)
    return [
      `view: no: ${found.length === 0 ? 'the gateway no longer lists it' : 'liveView is off, it has ended, or you lack the role'}`,
    ]
  return viewed.map(
    ({ id, views }) => `view: ${views.join(', ')}: ${env.PLAT_ADMIN_URL}/console/sessions/${encodeURIComponent(id)}`,
  )
}

function withoutClosedIntents(records: readonly LedgerRecord[]): readonly LedgerRecord[] {
  const ended = new Set(records.filter(({ rec }) => rec.kind === 'outcome').map(({ rec }) => rec.call))
  return records.filter(({ rec }) => rec.kind !== 'intent' || !ended.has(rec.call))
}

const orDash = (text: string) => text || '-'

export const timelineColumns = {
  columns: {
    time: ({ rec }: LedgerRecord) => textOf(rec.at).slice('YYYY-MM-DDT'.length, 'YYYY-MM-DDTHH:MM:SS'.length),
    event: ({ rec }: LedgerRecord) => orDash(eventOf(rec)),
    target: ({ rec }: LedgerRecord) => orDash(targetOf(rec)),
    grounds: ({ rec }: LedgerRecord) => orDash(groundsOf(rec)),
  },
  further: {
    ms: ({ rec }: LedgerRecord) => (typeof rec.ms === 'number' ? String(rec.ms) : '-'),
    call: ({ rec }: LedgerRecord) => orDash(textOf(rec.call)),
    record: ({ seq }: LedgerRecord) => String(seq),
  },
}
