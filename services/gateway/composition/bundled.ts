import path from 'node:path'
import { decodeStores } from '../builtin/memory/stores.ts'
import type { GatewayConfig } from '../config.ts'
import { decodeBudgets } from '../decide/budgets/caps/decode.ts'
import { decodePricing } from '../decide/budgets/pricing/decode.ts'
import { compilePolicies } from '../decide/policy/compile.ts'
import { decodePolicies } from '../decide/policy/decode.ts'
import { readRules } from '../decide/residency/rules.ts'
import { decodeFile as decodeRevocations } from '../decide/revocations/format.ts'
import { decodeAgents } from '../targets/a2a/decode.ts'
import { decodeModels } from '../targets/models/decode.ts'
import { decodeUpstreams } from '../targets/servers/decode.ts'

/** Result of a feature's decoder, with problems if the file is invalid. */
type Decode = (bytes: Uint8Array) => object

/**
 * Returns a function that lists the problems of a configuration bundle: each file that gateway.json names in `configBundle.dir` must be in the
 * bundle and valid for its feature, so that a bundle with one invalid file is refused as a whole.
 */
export function problemsOfBundle(config: GatewayConfig): (files: ReadonlyMap<string, Uint8Array>) => readonly string[] {
  const read: readonly (readonly [key: string, file: string, decode: Decode])[] = [
    ['policyFile', config.policyFile, decodeAndCompile],
    ['upstreamsFile', config.upstreamsFile, decodeUpstreams],
    ['modelsFile', config.modelsFile, decodeModels],
    ['budgetsFile', config.budgetsFile, decodeBudgets],
    ['pricingFile', config.pricingFile, decodePricing],
    ['revocationsFile', config.revocationsFile, decodeRevocations],
    ['sovereigntyPolicyFile', config.sovereigntyPolicyFile, readRules],
    ['memoryFile', config.memoryFile, decodeStores],
    ['a2a.routesFile', config.a2a.routesFile, decodeAgents],
  ]
  const wanted = read.flatMap(([key, file, decode]) => {
    const name = file === '' ? '' : path.relative(config.configBundle.dir, file)
    return name === '' || name.startsWith('..') || path.isAbsolute(name) ? [] : [{ key, name, decode }]
  })
  return (files) =>
    wanted.flatMap(({ key, name, decode }) => {
      const bytes = files.get(name)
      if (bytes === undefined) return [`${name} is missing, which ${key} of gateway.json names`]
      return problemsIn(decode(bytes)).map((problem) => `${name}: ${problem}`)
    })
}

function decodeAndCompile(bytes: Uint8Array): object {
  const decoded = decodePolicies(bytes)
  return decoded.ok ? compilePolicies(decoded.file) : decoded
}

function problemsIn(answer: object): readonly string[] {
  return 'problems' in answer && Array.isArray(answer.problems) ? answer.problems.map(String) : []
}
