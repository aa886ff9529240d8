import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fillLedger, ledgerLines, writeLines } from '@plat/testkit/ledger'

let folder = ''
let script = ''
let path = ''
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'plat-'))
  script = join(folder, 'verify.mjs')
  path = join(folder, 'audit.jsonl')
  const page = readFileSync(new URL('../../docs/verify.md', import.meta.url), 'utf8')
  writeFileSync(script, /```js\n(.*?)```/s.exec(page)?.[1] ?? '')
  await fillLedger(path, 199)
})
after(() => rmSync(folder, { recursive: true }))

/** Runs the page's script as an auditor would. */
function verify(file: string): { code: number | null; said: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, file], { encoding: 'utf8' })
  assert.equal(stderr, '')
  return { code: status, said: stdout }
}

test('the script of the documentation is about twenty lines', () => {
  const lines = readFileSync(script, 'utf8').trim().split('\n').length
  assert.ok(lines >= 15 && lines <= 25, `${lines} lines`)
})

test('the script says that a good ledger is valid, and names its head', () => {
  const { code, said } = verify(path)
  assert.equal(code, 0)
  assert.equal(said.trim(), `valid: 200 records, hash ${JSON.parse(ledgerLines(path).at(-1) ?? '').hash}`)
})

test('the script finds and locates changed bytes all over the ledger', () => {
  const good = readFileSync(path)
  const broken = join(folder, 'broken.jsonl')
  for (let sample = 0; sample < 12; sample++) {
    const at = 1 + Math.floor((good.length - 3) * (sample / 11))
    const bytes = Buffer.from(good)
    bytes[at] = (bytes[at] ?? 0) ^ (1 << (sample % 8))
    writeFileSync(broken, bytes)
    const line = good.subarray(0, at).toString('latin1').split('\n').length
    const { code, said } = verify(broken)
    assert.equal(code, 3)
    assert.match(
      said,
      new RegExp(`broken at record ${line - 1}, line ${line}, byte ${good.lastIndexOf(0x0a, at - 1) + 1}\n`),
    )
  }
})

test('the script finds a missing line, a doubled line and a torn tail', () => {
  const lines = ledgerLines(path)
  const file = join(folder, 'other.jsonl')
  writeLines(file, lines.toSpliced(50, 1))
  assert.match(verify(file).said, /broken at record 50,/)
  writeLines(file, lines.toSpliced(50, 0, lines[49] ?? ''))
  assert.match(verify(file).said, /broken at record 50,/)
  writeFileSync(file, readFileSync(path).subarray(0, -30))
  const { code, said } = verify(file)
  assert.equal(code, 4)
  assert.match(said, /valid up to record 198, /)
})
