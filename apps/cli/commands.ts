import type { Command } from 'commander'
import { addApprovals } from './approvals/command.ts'
import { addAudit } from './audit/command.ts'
import { addCompletion } from './completion/command.ts'
import { addContext } from './context/command.ts'
import { addCosts } from './costs/command.ts'
import { addEvidence } from './evidence/command.ts'
import { addKeys } from './keys/command.ts'
import { addLicense } from './license/command.ts'
import { addLogin } from './login/command.ts'
import { addPins } from './pins/command.ts'
import { addPricing } from './pricing/command.ts'
import { addChecking, addWriting } from './resource-commands.ts'
import { addRevoke } from './revoke/command.ts'
import { addRun } from './run/command.ts'
import { addSessions } from './sessions/command.ts'
import { addState } from './state/command.ts'
import { addStatus, addVersion } from './status/command.ts'
import { addToken } from './token/command.ts'
import { addUp } from './up/command.ts'

/** Adds every command, in the order of the help. `child`: arguments after `--`, for `plat run`. */
export function addCommands(plat: Command, child: readonly string[]): void {
  addWriting(plat)
  addUp(plat)
  addStatus(plat)
  addLogin(plat)
  addRun(plat, child)
  addSessions(plat)
  addToken(plat)
  addAudit(plat)
  addEvidence(plat)
  addApprovals(plat)
  addRevoke(plat)
  addPins(plat)
  addCosts(plat)
  addPricing(plat)
  addChecking(plat)
  addKeys(plat)
  addLicense(plat)
  addState(plat)
  addContext(plat)
  addCompletion(plat)
  addVersion(plat)
}
