/**
 * Verifies a copy of the ledger without plat running, and finds a changed record.
 *
 * Prints:
 *   add_note {"name":"draft","text":"Hello."}: Added "draft".
 *   valid
 *   broken at record 2: the hash does not match the line
 */
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { start } from './plat.ts'

await using plat = await start({})
const session = await plat.session()
await plat.call(session, 'add_note', { name: 'draft', text: 'Hello.' })
session.close()

const copy = path.join(plat.dir, 'copy.jsonl')
await copyFile(path.join(plat.dir, '.plat/state/audit.jsonl'), copy)
await verify()
await writeFile(copy, (await readFile(copy, 'utf8')).replace('add_note', 'sub_note'))
await verify()

async function verify(): Promise<void> {
  const [verdict = ''] = (await plat.command('audit', 'verify', copy)).split('\n')
  console.log(verdict.replace(/(?<=^valid):.*| \(.*\)/, ''))
}
