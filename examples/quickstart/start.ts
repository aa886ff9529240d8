import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CommandError, reportProblems, screen, startUp, terminal } from '@plat/cli'
import { type FlagTable, parseFlags } from '@plat/config'
import { systemClock } from '@plat/core'
import { giveBackStartMemoryWhenIdle, onShutdown } from '@plat/process'
import { startModel } from './model/server.ts'
import { startNotes } from './notes/server.ts'

const flags = {
  dir: {
    type: 'string',
    default: fileURLToPath(new URL('.', import.meta.url)),
    help: 'holds resources/ and takes .plat/',
  },
  listen: { type: 'string', default: '127.0.0.1:8080', help: 'where the gateway listens' },
  'identity-listen': { type: 'string', default: '127.0.0.1:8081', help: 'where the identity broker listens' },
  'notes-port': { type: 'int', default: 8091, help: 'where the notes server listens, on loopback' },
  'model-port': { type: 'int', default: 8092, help: 'where the scripted model server listens, on loopback' },
} as const satisfies FlagTable

/** `npm start`: the example notes server, the scripted model server and plat over this folder, in one process that ends together. */
export async function main(argv: readonly string[]): Promise<number> {
  const parsed = parseFlags(flags, argv, 'npm start --')
  if (!parsed.ok) {
    console.error(parsed.help ? parsed.usage : `${parsed.message}\n\n${parsed.usage}`)
    return parsed.help ? 0 : 2
  }
  return serve(parsed.values).catch((error: unknown) => {
    const message = oneLine(error)
    if (message === null) throw error
    console.error(message)
    return 1
  })
}

/** One line for an error that the user can fix; null for every other error. */
function oneLine(error: unknown): string | null {
  if (error instanceof CommandError) return error.message
  if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) return null
  const port = 'port' in error ? String(error.port) : ''
  return `port ${port} is taken: is npm start running already? Stop it, or whatever else has the port`
}

async function serve(values: {
  readonly dir: string
  readonly listen: string
  readonly 'identity-listen': string
  readonly 'notes-port': number
  readonly 'model-port': number
}): Promise<number> {
  const { dir, listen, ...rest } = values
  await using starting = new AsyncDisposableStack()
  const keep = <T extends { close(): Promise<void> }>(server: T): T => starting.adopt(server, () => server.close())
  keep(await startNotes({ port: rest['notes-port'], dir: `${dir}/.plat` }))
  keep(await startModel({ port: rest['model-port'] }))
  const plat = await startUp({ dir, listen, identityListen: rest['identity-listen'], log: 'file' })
  const servers = starting.move()
  for (const line of [...(await screen(plat)), ...commandsToTry(dir)]) console.log(line)
  const still = reportProblems(plat, terminal)
  return new Promise((resolve) => {
    onShutdown(async () => {
      still()
      await plat.stop()
      await servers.disposeAsync()
      resolve(0)
    })
    giveBackStartMemoryWhenIdle({ clock: systemClock })
  })
}

function commandsToTry(dir: string): string[] {
  const named = relative(process.cwd(), dir) || '.'
  return [
    '',
    'Try, in another terminal:',
    '',
    '  npm run demo',
    '      an agent that calls its model, adds notes, is denied, and waits for an approval; then its records in the ledger',
    `  npx --no plat run assistant -dir ${named} -- env`,
    '      the environment of a governed program: URLs, never a token',
    `  npx --no plat approvals watch -dir ${named}`,
    '      approve or deny with one key when an agent wants to delete a note',
    `  npx --no plat audit tail -dir ${named} -f`,
    '      the actions of agents as they happen',
    '',
    'The policy is resources/toolpolicies/default/assistant.yaml: change it, and it counts a moment later.',
    'Stop with Ctrl-C.',
  ]
}
