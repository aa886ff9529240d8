import type { Command } from 'commander'
import { addApprovals } from './approvals/command.ts'
import { addAudit } from './audit/command.ts'
import { addConfig } from './config/command.ts'
import { addCosts } from './costs/command.ts'
import { addEvidence } from './evidence/command.ts'
import { addKeys } from './keys/command.ts'
import { addLicense } from './license/command.ts'
import { addPins } from './pins/command.ts'
import { addPolicy } from './policy/command.ts'
import { addPosture } from './posture/command.ts'
import { addRevoke } from './revoke/command.ts'
import { addRun } from './run/command.ts'
import { addSchema } from './schema/command.ts'
import { addSessions } from './sessions/command.ts'
import { addState } from './state/command.ts'
import { addStatus, addVersion } from './status/command.ts'
import { addToken } from './token/command.ts'
import { addUp } from './up/command.ts'
import { addValidate } from './validate/command.ts'

/** Adds every command, in the order of the help. `child`: arguments after `--`, for `plat run`. */
export function addCommands(plat: Command, child: readonly string[]): void {
  addUp(plat)
  addStatus(plat)
  addRun(plat, child)
  addSessions(plat)
  addToken(plat)
  addAudit(plat)
  addEvidence(plat)
  addApprovals(plat)
  addRevoke(plat)
  addPins(plat)
  addCosts(plat)
  addValidate(plat)
  addSchema(plat)
  addConfig(plat)
  addPolicy(plat)
  addPosture(plat)
  addKeys(plat)
  addLicense(plat)
  addState(plat)
  addVersion(plat)
}
