import { setImmediate } from 'node:timers/promises'
import { costTarget, type Row } from '../../test/fuzz/cost.ts'
import { json } from '../../test/fuzz/families.ts'
import { WatchLines } from './watch.ts'

const KIB = 1024
const MIB = 1024 * KIB
/** One read of a socket. */
const SOCKET_CHUNK = 64 * KIB
const rows: readonly Row[] = [
  {
    parser: 'lines of watches',
    limit: 4 * MIB,
    families: {
      ...json,
      events: (n) => '{"type":"A","object":{}}\n'.repeat(n / 25),
      'empty lines': (n) => '\n'.repeat(n),
    },
    run: async (input) => {
      const watch = new WatchLines()
      const bytes = Buffer.from(input)
      for (let at = 0; at < bytes.length; at += SOCKET_CHUNK) {
        watch.push(bytes.subarray(at, at + SOCKET_CHUNK))
        // The next read of the socket. A feed with so many lines waiting has paused it before.
        await setImmediate()
      }
    },
  },
]

export const target = costTarget('cost/kubernetes', rows)
