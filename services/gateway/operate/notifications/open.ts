import { type Clock, type Ids, type PoolObservers, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import { createMemoryJournal, openFileJournal } from '@plat/state'
import type { FastifyInstance } from 'fastify'
import { openBearer } from './callbacks/bearer.ts'
import { CallbackRoutes, type Caller, type Decider } from './callbacks/routes.ts'
import type { NotifierConfig } from './config.ts'
import { Deliverer } from './delivery/courier.ts'
import { decodeOutboxEvent, Outbox, type OutboxEvent } from './delivery/outbox.ts'
import { type ApprovalOf, auditNotice, type Notice, noticeOf } from './notice.ts'
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
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly pools?: PoolObservers<'notifications' | 'callback_marks'>
}

/** Notifications of approvals, budgets, revocations, pins and the ledger (docs/spec/gateway.md, `notifiers`). Callers never wait for them. */
export interface Notifications {
  /** Called with every record that may need a notice. */
  record(rec: Rec): void
  /** Starts deliveries; `recorded`: the records read from the ledger at start. */
  begin(approvalOf: ApprovalOf, recorded: readonly Rec[]): void
  /** Called when the ledger cannot be written. */
  auditUnavailable(reason: string): void
  /** Mounts the callbacks. */
  pages(app: FastifyInstance, decider: Decider): void
  close(): Promise<void>
}

const TARGETS: Readonly<Record<NotifierConfig['type'], (parts: TargetParts) => Target>> = {
  webhook: webhookTarget,
  slack: slackTarget,
  teams: teamsTarget,
  matrix: matrixTarget,
}

/** Opens the outbox and starts to deliver waiting notices. Rejects if its journal cannot be read. */
export async function openNotifications(options: NotificationsOptions): Promise<Notifications> {
  const { config, clock, ids, log } = options
  const path = config.notifyOutboxPath
  if (path === '') log.warn({}, 'notifications wait in memory and are lost at a restart: notifyOutboxPath is empty')
  const file = path === '' ? null : await openFileJournal({ path, clock, decode: decodeOutboxEvent })
  const journal = file ?? createMemoryJournal<OutboxEvent>(() => clock.now())
  const onFault = (error: unknown) => log.error({ error: reasonOf(error) }, 'the outbox of notifications failed')
  const outbox = await Outbox.open({ journal, clock, onFault, observer: options.pools?.of('notifications') })
  const couriers = couriersOf(options, outbox)
  await dropUnknown(outbox, new Set(config.notifiers.map(({ name }) => name)))
  const listeners = config.notifiers.map(({ name, events }) => ({
    name,
    wants: (notice: Notice) => events.length === 0 || events.includes(notice.type),
  }))
  const queue = async (notice: Notice) => {
    const to = listeners.filter(({ wants }) => wants(notice)).map(({ name }) => name)
    if (to.length === 0 || outbox.has(notice.id)) return
    const isKept = await outbox.put(notice, to).catch((error: unknown) => {
      onFault(error)
      return true
    })
    if (isKept) for (const name of to) couriers.get(name)?.offer(notice)
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
  const callers = await callersOf(options)
  return {
    record,
    begin(lookUp, recorded) {
      approvalOf = lookUp
      for (const courier of couriers.values()) courier.start()
      // Queues records of an earlier process that died before it could.
      for (const rec of recorded) if (Date.parse(String(rec.at)) >= outbox.beganAt) record(rec)
      for (const rec of early.splice(0)) record(rec)
    },
    auditUnavailable: (reason) => void queue(auditNotice(reason, { id: ids.uuid(), at: clock.now() })),
    pages(app, decider) {
      if (callers.size > 0) new CallbackRoutes({ ...options, callers, decider }).mount(app)
    },
    async close() {
      for (const courier of couriers.values()) courier.close()
      for (const { bearer } of callers.values()) bearer?.close()
      outbox.close()
      await file?.close()
    },
  }
}

function couriersOf(options: NotificationsOptions, outbox: Outbox): Map<string, Deliverer> {
  const { config, clock, ids, log } = options
  const { consoleURL } = config
  return new Map(
    config.notifiers.map((notifier, index) => {
      const target = TARGETS[notifier.type]({ config: notifier, field: `notifiers[${index}]`, consoleURL, clock })
      const send = (notice: Notice) => sendOnce(() => target.message(notice), notifier, options)
      return [notifier.name, new Deliverer({ name: notifier.name, send, outbox, clock, ids, log })]
    }),
  )
}

/** Drops notices for notifiers that are no longer configured. */
async function dropUnknown(outbox: Outbox, known: ReadonlySet<string>): Promise<void> {
  for (const name of outbox.names()) {
    if (known.has(name)) continue
    for (const { id } of outbox.waitingFor(name)) await outbox.settle(id, name, 'there is no such notifier any more')
  }
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
