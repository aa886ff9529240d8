/** `plat up` in a terminal. */
import { systemClock } from '@plat/core'
import { giveBackStartMemoryWhenIdle, onShutdown } from '@plat/process'
import { NAMESPACE } from '../shared/draft.ts'
import { commandName, dirArgument } from '../shared/next-steps.ts'
import type { Output } from '../shared/output.ts'
import { reportProblems } from './problems.ts'
import { startUp, type Up, type UpOptions } from './up.ts'

/** `plat up`: starts, prints the screen, and drains on a signal. */
export async function up(options: UpOptions, output: Output): Promise<number> {
  const running = await startUp(options, (line) => output.err(line))
  for (const line of await screen(running)) output.out(line)
  output.out('')
  output.out(`Run a program as an agent: ${await runCommand(running)}`)
  const still = reportProblems(running, output)
  return new Promise((resolve) => {
    onShutdown(async () => {
      still()
      await running.stop()
      resolve(0)
    })
    giveBackStartMemoryWhenIdle({ clock: systemClock })
  })
}

/** The command that runs a program as one of the agents. */
async function runCommand({ home, store }: Up): Promise<string> {
  const agent = (await store.list('Agent', {})).items.find(({ metadata }) => metadata.namespace === NAMESPACE)
  const name = agent?.metadata.name ?? '<agent>'
  return `${commandName(process.env)} run${dirArgument(home.dir, '-dir ')} ${name} -- <your program>`
}

/** The start screen: addresses, governed resources and their problems. */
export async function screen(running: Up): Promise<string[]> {
  const { refused, warnings } = await running.problems()
  const count = async (kind: 'Agent' | 'MCPServer' | 'ToolPolicy') => (await running.store.list(kind, {})).items
  const name = (items: readonly { metadata: { namespace?: string | undefined; name: string } }[]) =>
    items.map((item) => `${item.metadata.namespace}/${item.metadata.name}`).join(', ') || 'none'
  return [
    'plat is up.',
    '',
    `  gateway   ${running.env.PLAT_GATEWAY_URL}`,
    `  MCP       ${running.env.PLAT_GATEWAY_URL}/mcp (all servers of an agent; one: /mcp/<server>)`,
    ...(running.env.PLAT_ADMIN_URL === running.env.PLAT_GATEWAY_URL
      ? []
      : [`  admin     ${running.env.PLAT_ADMIN_URL}`]),
    ...(running.consoleUrl === null
      ? []
      : [
          `  console   ${running.consoleUrl} (log in: ${commandName(process.env)} console${dirArgument(running.home.dir, '-dir ')})`,
        ]),
    `  identity  ${running.env.PLAT_IDENTITY_URL}`,
    `  state     ${running.home.state}`,
    '',
    `  agents       ${name(await count('Agent'))}`,
    `  MCP servers  ${name(await count('MCPServer'))}`,
    `  policies     ${name(await count('ToolPolicy'))}`,
    ...listed('refused, and denied until fixed:', refused),
    ...listed('warnings:', warnings),
  ]
}

function listed(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', `  ${title}`, ...lines.map((line) => `    ${line}`)]
}
