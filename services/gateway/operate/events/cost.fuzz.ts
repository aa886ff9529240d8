import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { runInSlices, type Steps, systemIds, TestClock } from '@plat/core'
import { costTarget, type Families, type Row } from '../../../../test/fuzz/cost.ts'
import { tokenPrincipal } from '../../admin/roles.ts'
import { EventFeed } from './feed.ts'
import { EventStream } from './routes.ts'

/** Records of refused calls together, in characters. */
const RECORDS = 4 * 1024 * 1024
/** The console of as many people. */
const READERS = 20

const denied = (members: object) => JSON.stringify({ action: 'deny', namespace: 'a', op: 'tools/call', ...members })

const records: Families = {
  'short records': (n) => `${denied({})}\n`.repeat(n / 60),
  'many namespaces': (n) => Array.from({ length: n / 70 }, (_, at) => `${denied({ namespace: `n${at}` })}\n`).join(''),
  'long tools': (n) => `${denied({ tool: 'a'.repeat(4000) })}\n`.repeat(n / 4070),
  'escaped tools': (n) => `${denied({ tool: '"'.repeat(2000) })}\n`.repeat(n / 4070),
}

const row: Row = {
  parser: 'events of the gateway',
  limit: RECORDS,
  families: records,
  prepare(input) {
    const lines = input.split('\n').filter((line) => line !== '')
    const all: Readonly<Record<string, unknown>>[] = lines.map((line) => JSON.parse(line))
    return () => {
      const clock = new TestClock()
      const feed = new EventFeed({ clock, ids: systemIds(clock), problems: () => [] })
      const caller = { principal: tokenPrincipal({}), sees: () => true }
      for (let count = 0; count < READERS; count++) {
        const response = new ServerResponse(new IncomingMessage(new Socket()))
        const stream = new EventStream(response, caller, feed.instance)
        feed.follow(stream)
        stream.open(feed.after(feed.instance, 0), feed.seq)
      }
      return runInSlices(seen(all, feed))
    }
  },
}

/** Each record is the end of another call. */
function* seen(all: readonly Readonly<Record<string, unknown>>[], feed: EventFeed): Steps<void> {
  for (const record of all) {
    feed.see(record)
    yield
  }
  feed.close()
}

export const target = costTarget('cost/gateway events', [row])
