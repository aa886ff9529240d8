import type { Command } from 'commander'
import { addConfig } from './config/command.ts'
import { addImport } from './import/command.ts'
import { addInit } from './init/command.ts'
import { addPolicy } from './policy/command.ts'
import { addPosture } from './posture/command.ts'
import { addSchema } from './schema/command.ts'
import { addValidate } from './validate/command.ts'

export function addWriting(plat: Command): void {
  addInit(plat)
  addImport(plat)
}

export function addChecking(plat: Command): void {
  addValidate(plat)
  addSchema(plat)
  addConfig(plat)
  addPolicy(plat)
  addPosture(plat)
}
