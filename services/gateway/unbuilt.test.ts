import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkConfig, formatProblem } from '@plat/config'
import { gatewayBlocks } from './config.ts'

const MIB = 1024 * 1024

/** A key of a feature that is not built yet, with the limit of document 3 and the largest value that may stand there. */
const LIMITS: readonly (readonly [path: string, limit: number, most?: number])[] = [
  ['k8sOps.maxLogLines', 200, 5000],
  ['k8sOps.maxLogBytes', 64 * 1024, MIB],
  ['k8sOps.maxListItems', 200, 1000],
  ['k8sOps.timeoutSeconds', 10],
  ['infra.maxPlanBytes', 16 * MIB, 256 * MIB],
]

function checked(path: string, value: number) {
  const [block = '', name = ''] = path.split('.')
  return checkConfig(JSON.stringify({ [block]: { [name]: value } }), gatewayBlocks).problems.map(formatProblem)
}

test('the limits of features that are not built stand in the configuration, and nothing beyond them is taken', () => {
  // Shows D3.limit.clusterOps and D3.limit.plan, as far as the configuration holds them.
  for (const [path, limit, most] of LIMITS) {
    const [block = ''] = path.split('.')
    const own = (problems: readonly string[]) => problems.filter((problem) => problem.startsWith(block))
    assert.deepEqual(own(checked(path, limit)), [], path)
    // Any other value would switch on what is not there.
    assert.deepEqual(own(checked(path, limit + 1)), [`${block}: not built yet in this version`])
    if (most === undefined) continue
    assert.match(own(checked(path, most + 1)).join(), new RegExp(`^${path}: must be .*${most}`), path)
  }
})
