import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { parseFlags, settingsOf } from '@plat/config'
import { createRegistry } from '@plat/metrics'
import { boundNonce } from '@plat/tokens'
import { attestationFlags, settingProblems } from './flags.ts'
import { attestationMetrics } from './metrics.ts'
import { decodeReleaseRequest } from './release/request.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const PAGE = readFileSync(path.join(ROOT, 'docs/attestation.md'), 'utf8')

/** Texts in backticks in the first column of the table below a heading. */
function firstColumn(heading: string): string[] {
  const section = PAGE.split(/^## /m).find((text) => text.startsWith(heading)) ?? ''
  return [...section.matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word),
  )
}

test('the example release of the page is accepted by the service', () => {
  const [example = ''] = [...PAGE.matchAll(/```json\n(.*?)```/gs)].map(([, text = '']) => text)
  const { name, digests, isolation, endsAt } = decodeReleaseRequest(Buffer.from(example))
  assert.deepEqual(
    [name, digests[0]?.length, isolation, endsAt],
    [{ namespace: 'team', agent: 'assistant', session: 's1' }, 96, 'tee', Date.UTC(2030, 0, 1)],
  )
})

test('the page names every flag, and its command starts the service', () => {
  const flags = Object.keys(attestationFlags).filter((flag) => flag !== 'version')
  assert.deepEqual(firstColumn('Start it').sort(), flags.map((flag) => `-${flag}`).sort())
  const [, command = ''] = /plat-attestation \\\n(.*?)\n```/s.exec(PAGE) ?? []
  const parsed = parseFlags(attestationFlags, command.replaceAll('\\\n', ' ').trim().split(/\s+/))
  assert.ok(parsed.ok)
  assert.deepEqual(settingProblems(settingsOf(attestationFlags, parsed.values)), [])
})

test('the page names every refusal code and every series', () => {
  const sources = ['.', 'challenge', 'evidence', 'release', 'renew'].flatMap((folder) =>
    readdirSync(path.join(import.meta.dirname, folder))
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
      .map((file) => readFileSync(path.join(import.meta.dirname, folder, file), 'utf8')),
  )
  const codes = sources.flatMap((text) => [
    ...[...text.matchAll(/new CodedRefusalError\(\s*\d{3},\s*'(\w+)'/g)].map(([, code]) => code),
    ...(text.includes('overloadedRefusal(') ? ['overloaded'] : []),
  ])
  assert.deepEqual(firstColumn('Errors').sort(), [...new Set(codes)].sort())
  const series = attestationMetrics.map((row) => row.name).sort()
  const documented = firstColumn('Metrics').map((text) => text.replace(/\{.*/, ''))
  assert.deepEqual(documented.sort(), series)
  const registry = createRegistry(attestationMetrics, { component: 'attestation', build: BUILD })
  for (const name of series) assert.ok(registry.expose().includes(`# HELP ${name} `), name)
})

const BUILD = {
  component: 'attestation',
  version: '',
  commit: '',
  buildDate: '',
  goVersion: '',
  platform: '',
  tags: '',
}

test('a nonce is as documented: part of the hash of salt and thumbprint, in base32', () => {
  // Computed with Python's hashlib and base64.
  const expected = '6vzutl7thzdrbmh76lcnxku2mstmcmkf'
  assert.equal(boundNonce('salt', 'jkt'), expected)
  assert.notEqual(boundNonce('salt', 'jku'), expected)
  assert.notEqual(boundNonce('tlas', 'jkt'), expected)
})
