import type { Tables } from '../schema.ts'
import { version1 } from './version1.ts'
import { version2 } from './version2.ts'
import { version3 } from './version3.ts'
import { version4 } from './version4.ts'
import { version5 } from './version5.ts'
import { version6 } from './version6.ts'

/** The tables that gateways share, in a separate schema. Atomic operations are database functions, so that no lock is held during a round trip. */
export function stateTables(schema: string): Tables {
  const quoted = `"${schema}"`
  return {
    schema,
    version: `${quoted}.version`,
    steps: [version1(quoted), version2(quoted), version3(quoted), version4(quoted), version5(quoted), version6(quoted)],
  }
}
