import { readFileSync } from 'node:fs'

/**
 * Reads a secret from the environment: the value of `name`, or the content of the file that `<name>_FILE` names, without one trailing newline.
 * Returns null when neither is set. Throws with the variable's name, never the value, when both are set, when the value is empty, or when the file
 * cannot be read.
 */
export function readSecret(env: NodeJS.ProcessEnv, name: string): string | null {
  const value = env[name]
  const file = env[`${name}_FILE`]
  if (value !== undefined && file !== undefined) {
    throw new Error(`${name} and ${name}_FILE are both set: keep one of them`)
  }
  if (file !== undefined) return notEmpty(readSecretFile(`${name}_FILE`, file), `the file of ${name}_FILE`)
  return value === undefined ? null : notEmpty(value, name)
}

function readSecretFile(variable: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    throw new Error(`${variable} names a file that cannot be read: ${file} (${why})`)
  }
}

function notEmpty(value: string, source: string): string {
  if (value === '') throw new Error(`${source} is empty: unset it or give it a value`)
  return value
}
