import type { Clock, Ids, PoolObservers } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Ledgers, Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { FastifyInstance } from 'fastify'
import type { Decider } from './callbacks/routes.ts'
import type { NotifierConfig } from './config.ts'
import type { ApprovalView } from './notice.ts'

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

/** Returns an approval as the admin API presents it, or null if the id is unknown. */
export type ApprovalOf = (id: string) => ApprovalView | null

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

const OFF: Notifications = {
  record() {},
  begin() {},
  auditUnavailable() {},
  pages() {},
  close: () => Promise.resolve(),
}

/** Creates notifications if there are notifiers. Rejects if the outbox cannot be read. */
export async function createNotifications(options: NotificationsOptions): Promise<Notifications> {
  if (options.config.notifiers.length === 0) return OFF
  const { openNotifications } = await import('./open.ts')
  return openNotifications(options)
}

/** Wraps ledgers so that their records are notified once durable, and also after a failed write. */
export function listened(ledgers: Ledgers, notifications: Pick<Notifications, 'record'>): Ledgers {
  if (notifications === OFF) return ledgers
  return {
    of(tenant) {
      const ledger = ledgers.of(tenant)
      return {
        append(rec) {
          const appended = ledger.append(rec)
          const notify = () => notifications.record(rec)
          appended.then(notify, notify)
          return appended
        },
        enter: (rec, waiter) => ledger.enter(rec, waiter),
        head: () => ledger.head(),
        get health() {
          return ledger.health
        },
        close: () => ledger.close(),
      }
    },
  }
}
