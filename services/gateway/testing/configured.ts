import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatProblem } from '@plat/config'
import { checkGatewayConfig, type GatewayConfig, typedConfig } from '../config.ts'
import { REPOSITORY } from '../reference.ts'

/** The required members of gateway.json; its files need not exist. */
const LEAST = {
  policyFile: '/policies.json',
  auditPath: '/audit.jsonl',
  upstreams: { notes: 'http://127.0.0.1:9/mcp' },
  identity: { publicKeyFiles: ['/pub.pem'] },
}

function checked(own: object) {
  return checkGatewayConfig(JSON.stringify({ ...LEAST, ...own }), { exists: () => true })
}

/** Problems of the least gateway.json with `own` over it, a line each. */
export function problemsWith(own: object): readonly string[] {
  return checked(own).problems.map(formatProblem)
}

/** The configuration that the same file stands for, its defaults filled in. It must have no problem. */
export function configWith(own: object): GatewayConfig {
  assert.deepEqual(problemsWith(own), [])
  return typedConfig(checked(own).config)
}

/** The blocks of one language in a page of docs/, such as `web.md`. There must be one. */
export function examples(page: string, language: string): [string, ...string[]] {
  const text = readFileSync(join(REPOSITORY, 'docs', page), 'utf8')
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))]
  const [first, ...others] = blocks.map(([, block = '']) => block)
  return [first ?? assert.fail(`docs/${page} has no block of ${language}`), ...others]
}
