import { isAbsolute, relative, resolve } from 'node:path'

/** The command as it was started: npx runs a program that is not on the PATH. */
export function commandName(env: NodeJS.ProcessEnv): string {
  return env.npm_command === 'exec' ? 'npx --no plat' : 'plat'
}

/** Arguments that name the directory after `flag`; empty for the current directory. */
export function dirArgument(dir: string, flag = ''): string {
  const path = relative(process.cwd(), resolve(dir))
  if (path === '') return ''
  return ` ${flag}${isAbsolute(dir) ? resolve(dir) : path}`
}

/** The commands after `plat init` and `plat import`. */
export function nextSteps({
  dir,
  agent,
  env,
}: {
  readonly dir: string
  readonly agent: string
  readonly env: NodeJS.ProcessEnv
}): readonly string[] {
  const plat = commandName(env)
  return [
    `next: ${plat} up${dirArgument(dir)}`,
    `then, in a second terminal: ${plat} run${dirArgument(dir, '-dir ')} ${agent} -- <your program>`,
  ]
}
