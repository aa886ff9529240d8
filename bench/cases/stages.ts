import { cpuPerRequest, type Target } from '../harness/load.ts'
import { makeKeys, startGateway, startOwn, withServers } from '../harness/plat.ts'
import type { Server } from '../harness/proc.ts'
import { type BenchCase, row } from '../harness/report.ts'
import { callTraffic } from './mcp.ts'

/**
 * Cost of the stages for revocations, approvals and budgets per governed `tools/call`: the same call through a gateway without entries,
 * through one with 1,000 revoked sessions and an approval rule, and through one that also holds and settles a rate and a budget.
 */
export const stages: BenchCase = {
  name: 'stages',
  async run({ dir, effort }) {
    const keys = await makeKeys(dir)
    const traffic = callTraffic(keys)
    const cpu = await withServers(async (keep) => {
      const direct = await keep(startOwn(dir, 'upstream.ts'))
      const at = `${direct.url}/mcp`
      const plain = await keep(startGateway(`${dir}/plain`, keys, at))
      const requesting = await keep(startGateway(`${dir}/watched`, keys, at, { watched: 'asked' }))
      const held = await keep(startGateway(`${dir}/held`, keys, at, { watched: 'held' }))
      const target = (server: Server): Target => ({ server, traffic })
      return cpuPerRequest({ plain: target(plain), asked: target(requesting), held: target(held) }, effort)
    })
    const figure = (what: string, name: 'asked' | 'held') =>
      row({
        what,
        value: cpu.over(name, 'plain'),
        unit: '×',
        target: ['≤', 1.1],
        detail: `${cpu.micros(name).toFixed(1)} µs, without ${cpu.micros('plain').toFixed(1)} µs`,
      })
    return [
      figure('call with revocations and approvals, CPU', 'asked'),
      figure('the same with a rate and a budget, CPU', 'held'),
    ]
  },
}
