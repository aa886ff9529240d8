import { TestClock } from '@plat/core'
import { leasePromises } from './lease.conformance.ts'
import { memoryLeases } from './lease.ts'

const clock = new TestClock()

leasePromises({
  name: 'leases in memory',
  async open() {
    const leases = memoryLeases(clock)
    return { replicas: [leases, leases], async close() {} }
  },
  pass: (ms) => clock.advance(ms),
})
