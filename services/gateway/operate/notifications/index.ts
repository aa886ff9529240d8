import type { Ledgers } from '@plat/ledger'
import type { Notifications, NotificationsOptions } from './open.ts'

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
