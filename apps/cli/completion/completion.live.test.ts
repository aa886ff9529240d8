import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { program } from '../main.ts'
import { completionScript, SHELLS } from './scripts.ts'

const script = completionScript('bash', program())

/** Completions of the last word in bash. */
async function offered(...words: readonly string[]): Promise<readonly string[]> {
  const list = ['plat', ...words].map((word) => `'${word}'`).join(' ')
  const run = `${script}\nCOMP_WORDS=(${list}); COMP_CWORD=${words.length}; _plat; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', run], { cwd: import.meta.dirname })
  return stdout.trim().split('\n')
}

test('bash completes commands, flags and choices from the table of commands', async () => {
  assert.deepEqual(await offered('approv'), ['approvals'])
  assert.deepEqual(await offered('approvals', 'w'), ['watch'])
  assert.deepEqual(await offered('approvals', 'list', '-co'), ['-context'])
  assert.deepEqual(await offered('approvals', '-x', 'list', '-al'), ['-all'])
  assert.deepEqual(await offered('import', 'lite'), ['litellm'])
  assert.deepEqual(await offered('validate', 'scri'), ['scripts.ts'], 'files where nothing else fits')
})

test('every command is in the script of every shell', () => {
  const names = program().commands.map((command) => command.name())
  for (const shell of SHELLS) {
    const text = completionScript(shell, program())
    for (const name of names) assert.ok(new RegExp(`\\b${name}\\b`).test(text), `${shell}: ${name}`)
  }
})
