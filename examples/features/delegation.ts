/**
 * A called agent acts for its caller and the caller's user, and the ledger says so.
 *
 * Prints:
 *   add_note {"name":"found","text":"Three sources."}: Added "found".
 *   researcher called add_note for default/assistant and ada
 */
import { start } from './plat.ts'

await using plat = await start({
  resources: {
    'Agent/researcher': 'image: example.com/researcher:1\ntier: tier-0\npolicyRef: assistant\ntools: [{ name: notes }]',
  },
})
const caller = await plat.session('assistant', ['agents:researcher'])
const researcher = await plat.session('researcher', ['tools:notes'])
const acting = await researcher.delegate({ session: await caller.token() })
await plat.call(acting, 'add_note', { name: 'found', text: 'Three sources.' })

const lines = (await plat.command('audit', 'tail', '-o', 'json')).trim().split('\n')
const record = lines.map((line) => JSON.parse(line).rec).find(({ tool }) => tool === 'add_note')
console.log(`${record.agent} called ${record.tool} for ${record.facts.chain} and ${record.user}`)
for (const session of [caller, researcher]) session.close()
