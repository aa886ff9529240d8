import { type Clock, type Ids, type PoolObservers, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { JournalSpec, Journals, Leadership, Leases, OnceSets } from '@plat/state'
import type { FastifyInstance } from 'fastify'
import { openBearer } from './callbacks/bearer.ts'
import { CallbackRoutes, type Caller, type Decider } from './callbacks/routes.ts'
import type { NotifierConfig } from './config.ts'
import type { Sent } from './delivery/courier.ts'
import { Deliveries } from './delivery/deliveries.ts'
import { decodeOutboxEvent, Outbox, type OutboxEvent } from './delivery/outbox.ts'
import { type ApprovalOf, approvalNoticeId, auditNotice, type Notice, noticeOf } from './notice.ts'
import { matrixTarget } from './targets/matrix.ts'
import { slackTarget } from './targets/slack.ts'
import { sendOnce, type Target, type TargetParts } from './targets/target.ts'
import { teamsTarget } from './targets/teams.ts'
import { webhookTarget } from './targets/webhook.ts'

export interface NotificationsOptions {
  readonly config: {
    readonly consoleURL: string
    readonly notifiers: readonly NotifierConfig[]
    readonly notifyOutboxPath: string
  }
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly extraCA: string | null
  readonly journals: Journals
  readonly leadership: Leadership
  readonly leases: Leases
  /** Callbacks that were accepted. */
  readonly once: OnceSets
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly pools?: PoolObservers<'notifications' | 'callback_marks'>
}

/** Notifications of approvals, budgets, revocations, pins and the ledger (docs/spec/gateway.md, `notifiers`). Callers never wait for them. */
export interface Notifications {
  /** Called with every record that may need a notice. */
  record(rec: Rec): void
  /** Starts deliveries; `recorded`: the records read from the ledger at start, `latest`: the last event of each approval. */
  begin(approvalOf: ApprovalOf, recorded: readonly Rec[], latest: () => readonly LatestEvent[]): void
  /** Called when the ledger cannot be written. */
  auditUnavailable(reason: string): void
  /** Mounts the callbacks. */
  pages(app: FastifyInstance, decider: Decider): void
  close(): Promise<void>
}

/** The last event of an approval, as a record has it. */
export interface LatestEvent {
  readonly approval: string
  readonly event: string
  /** When the approval was created, in milliseconds since the epoch. */
  readonly createdAt: number
}

/** How long the replica that wrote an event of an approval may need to queue its notice, in milliseconds. */
const QUEUED_WITHIN_MS = 10_000
/** Older approvals are not looked for: their notices may be forgotten, in milliseconds. */
const LOOKED_BACK_MS = 24 * 3_600_000

/** The journal of notices that wait. */
export function outboxJournal(
  config: Pick<NotificationsOptions['config'], 'notifyOutboxPath'>,
): JournalSpec<OutboxEvent> {
  return { name: 'notifications', path: config.notifyOutboxPath, decode: decodeOutboxEvent }
}

const TARGETS: Readonly<Record<NotifierConfig['type'], (parts: TargetParts) => Target>> = {
  webhook: webhookTarget,
  slack: slackTarget,
  teams: teamsTarget,
  matrix: matrixTarget,
}

/** Opens the outbox and starts to deliver waiting notices. Rejects if its journal cannot be read. */
export async function openNotifications(options: NotificationsOptions): Promise<Notifications> {
  const { config, journals, clock, ids, log } = options
  warnOfMemory(options)
  const journal = await journals.open(outboxJournal(config))
  const onFault = (error: unknown) => log.error({ error: reasonOf(error) }, 'the outbox of notifications failed')
  const observer = options.pools?.of('notifications')
  let deliveries: Deliveries | null = null
  const onQueued: Deliveries['offer'] = (notice, to) => deliveries?.offer(notice, to)
  const outbox = await Outbox.open({ journal, clock, onFault, onQueued, observer })
  const queue = async (notice: Notice) => {
    const to = receiverNames(config, notice)
    if (to.length === 0 || outbox.has(notice.id)) return
    const isKept = await outbox.put(notice, to).catch((error: unknown) => {
      onFault(error)
      return true
    })
    if (isKept) deliveries?.offer(notice, to)
    else log.error({ notice: notice.id, type: notice.type }, 'a notification is lost: too many are queued')
  }
  let approvalOf: ApprovalOf | null = null
  /** Records from before `begin`, while features start. */
  const early: Rec[] = []
  const record: Notifications['record'] = (rec) => {
    if (approvalOf === null) {
      early.push(rec)
      return
    }
    const notice = noticeOf(rec, approvalOf, clock.now())
    if (notice !== null) void queue(notice)
  }
  let latest: () => readonly LatestEvent[] = () => []
  const addMissing = () => {
    for (const { approval, event } of missingOf(latest, outbox, options)) record({ kind: 'approval', event, approval })
  }
  const receivers = receiversOf(options)
  const begun = new Deliveries({ ...options, receivers, outbox, catchUp: journals.catchUp, addMissing })
  deliveries = begun
  const callers = await callersOf(options)
  return {
    record,
    begin(lookUp, recorded, latestEvents) {
      approvalOf = lookUp
      latest = latestEvents
      begun.start()
      // Queues records of an earlier process that died before it could.
      for (const rec of recorded) if (Date.parse(String(rec.at)) >= outbox.beganAt) record(rec)
      for (const rec of early.splice(0)) record(rec)
    },
    auditUnavailable: (reason) => void queue(auditNotice(reason, { id: ids.uuid(), at: clock.now() })),
    pages(app, decider) {
      if (callers.size > 0) new CallbackRoutes({ ...options, callers, decider }).mount(app)
    },
    async close() {
      await begun.close()
      for (const { bearer } of callers.values()) bearer?.close()
      outbox.close()
      await journal.close()
    },
  }
}

function warnOfMemory({ config, journals, log }: NotificationsOptions): void {
  if (config.notifyOutboxPath === '' && !journals.shared)
    log.warn({}, 'notifications wait in memory and are lost at a restart: notifyOutboxPath is empty')
}

function receiverNames({ notifiers }: NotificationsOptions['config'], { type }: Notice): string[] {
  return notifiers.filter(({ events }) => events.length === 0 || events.includes(type)).map(({ name }) => name)
}

/** Returns the events whose notice the replica that wrote them did not queue in time. Without other replicas it reads them from its ledger. */
function missingOf(
  latest: () => readonly LatestEvent[],
  outbox: Outbox,
  { journals, clock }: NotificationsOptions,
): readonly LatestEvent[] {
  if (!journals.shared) return []
  const now = clock.now()
  return latest().filter(({ approval, event, createdAt }) => {
    const age = now - createdAt
    const isDue = createdAt >= outbox.beganAt && age > QUEUED_WITHIN_MS && age < LOOKED_BACK_MS
    return isDue && !outbox.has(approvalNoticeId(approval, event) ?? '')
  })
}

/** How a notice is sent once, by the name of the notifier. */
function receiversOf(options: NotificationsOptions): Map<string, (notice: Notice) => Promise<Sent>> {
  const { config, clock } = options
  const { consoleURL } = config
  return new Map(
    config.notifiers.map((notifier, index) => {
      const target = TARGETS[notifier.type]({ config: notifier, field: `notifiers[${index}]`, consoleURL, clock })
      return [notifier.name, (notice: Notice) => sendOnce(() => target.message(notice), notifier, options)]
    }),
  )
}

async function callersOf(options: NotificationsOptions): Promise<Map<string, Caller>> {
  const callers = new Map<string, Caller>()
  for (const [index, config] of options.config.notifiers.entries()) {
    const { name, callbackOIDC, signingSecretFile } = config
    if (callbackOIDC.issuer === '' && signingSecretFile === '') continue
    const bearer =
      callbackOIDC.issuer === '' ? null : await openBearer(callbackOIDC, { ...options, caPEM: options.extraCA })
    callers.set(name, { config, field: `notifiers[${index}]`, bearer })
  }
  return callers
}
