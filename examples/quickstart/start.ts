import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { screen, startUp } from '@plat/cli'
import { onShutdown } from '@plat/process'
import { startNotes } from './notes/server.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const NOTES_PORT = 8091

/** `npm start`: the example notes server and plat over this folder, in one process that ends together. */
export async function main(): Promise<number> {
  const notes = await startNotes({ port: NOTES_PORT, dir: `${here}.plat` })
  const plat = await startUp({
    dir: here,
    listen: '127.0.0.1:8080',
    identityListen: '127.0.0.1:8081',
    log: 'file',
  }).catch(async (error: unknown) => {
    await notes.close()
    throw error
  })
  for (const line of [...(await screen(plat)), ...commandsToTry()]) console.log(line)
  return new Promise((resolve) => {
    onShutdown(async () => {
      await plat.stop()
      await notes.close()
      resolve(0)
    })
  })
}

function commandsToTry(): string[] {
  const dir = relative(process.cwd(), here) || '.'
  return [
    '',
    'Try, in another terminal:',
    '',
    '  npm run demo                                          an agent that lists, adds, and is denied',
    `  npx plat run -dir ${dir} assistant -- env | grep PLAT   what a governed program gets`,
    `  npx plat audit tail -dir ${dir} -f                     what agents do, as it happens`,
    '',
    'Stop with Ctrl-C. The policy is resources/toolpolicies/default/assistant.yaml: change it, and it counts at once.',
  ]
}
