/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Evaluates the programs of .eh_frame (DWARF 5, section 6.4.2, and GNU's additions), for the CFA,
 * rbp and the return address only. If a program is damaged, or does what no rule expresses, the
 * rest of its function is GP_UNWIND_HARD.
 */
#include "inspect/unwind/cfi.h"

#include "wire.h"

#include <dwarf.h>
#include <string.h>

/* DWARF's numbers of x86-64. */
#define REG_BP 6
#define REG_SP 7
#define REG_RA 16

#define REMEMBER_MAX 16

struct run {
	const struct cfi *cfi;
	const struct cfi_cie *cie;
	struct cfi_state state;
	struct cfi_state remembered[REMEMBER_MAX];
	unsigned int remembered_nr;
	uint64_t address;
};

uint64_t cfi_get(struct cfi_cursor *c, unsigned int bytes)
{
	uint64_t value = 0;

	if (c->bad || bytes > (size_t)(c->end - c->at)) {
		c->bad = true;
		return 0;
	}
	memcpy(&value, c->at, bytes);
	c->at += bytes;
	return value;
}

uint64_t cfi_get_uleb(struct cfi_cursor *c)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)cfi_get(c, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 70);
	return value;
}

static int64_t get_sleb(struct cfi_cursor *c)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)cfi_get(c, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 70);
	if (shift < 64 && byte & 0x40)
		value |= ~0ULL << shift;
	return (int64_t)value;
}

bool cfi_get_address(struct cfi_cursor *c, const struct cfi *cfi, uint8_t encoding, bool relative,
		     uint64_t *ret_address)
{
	uint64_t place = cfi->address + (uint64_t)(c->at - cfi->data), value;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = cfi_get(c, 8);
		break;
	case DW_EH_PE_uleb128:
		value = cfi_get_uleb(c);
		break;
	case DW_EH_PE_sleb128:
		value = (uint64_t)get_sleb(c);
		break;
	case DW_EH_PE_udata2:
		value = cfi_get(c, 2);
		break;
	case DW_EH_PE_sdata2:
		value = (uint64_t)(int16_t)cfi_get(c, 2);
		break;
	case DW_EH_PE_udata4:
		value = cfi_get(c, 4);
		break;
	case DW_EH_PE_sdata4:
		value = (uint64_t)(int32_t)cfi_get(c, 4);
		break;
	default:
		return false;
	}
	if (relative && (encoding & 0x70) == DW_EH_PE_pcrel)
		value += place;
	else if (relative && (encoding & 0xf0) != DW_EH_PE_absptr)
		return false;
	*ret_address = value;
	return !c->bad && !(encoding & DW_EH_PE_indirect);
}

/* ---- the operations ---- */

static struct cfi_value *value_of(struct cfi_state *s, uint64_t reg)
{
	return reg == REG_BP ? &s->bp : reg == REG_RA ? &s->ra : NULL;
}

static void set_value(struct run *r, uint64_t reg, struct cfi_value value)
{
	struct cfi_value *v = value_of(&r->state, reg);

	if (v)
		*v = value;
}

static void set_offset(struct run *r, uint64_t reg, int64_t factored)
{
	struct cfi_value v = {.how = CFI_OFFSET};

	if (__builtin_mul_overflow(factored, r->cie->data_align, &v.offset))
		v.how = CFI_OTHER;
	set_value(r, reg, v);
}

static void set_cfa(struct run *r, uint64_t reg, int64_t offset)
{
	r->state.cfa = (struct cfi_value){
		.how = reg <= UINT32_MAX ? CFI_REGISTER : CFI_OTHER,
		.reg = (uint32_t)reg,
		.offset = offset,
	};
}

static int64_t factored(const struct run *r, int64_t n)
{
	return (int64_t)((uint64_t)n * (uint64_t)r->cie->data_align);
}

static struct cfi_value get_expression(struct cfi_cursor *c)
{
	struct cfi_value v = {.how = CFI_EXPRESSION, .expression_bytes = cfi_get_uleb(c)};

	v.expression = c->at;
	if (v.expression_bytes > (uint64_t)(c->end - c->at))
		c->bad = true;
	else
		c->at += v.expression_bytes;
	return v;
}

static void restore(struct run *r, uint64_t reg)
{
	struct cfi_state initial = r->cie->initial;
	struct cfi_value *v = value_of(&initial, reg);

	if (v)
		set_value(r, reg, *v);
}

static bool remember(struct run *r)
{
	if (r->remembered_nr == REMEMBER_MAX)
		return false;
	r->remembered[r->remembered_nr++] = r->state;
	return true;
}

static bool restore_state(struct run *r)
{
	if (!r->remembered_nr)
		return false;
	r->state = r->remembered[--r->remembered_nr];
	return true;
}

/* Operations that define the CFA. False: it is none of them. */
static bool run_cfa(struct run *r, struct cfi_cursor *c, uint8_t op)
{
	struct cfi_value *cfa = &r->state.cfa;
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = cfi_get_uleb(c);
		set_cfa(r, reg, (int64_t)cfi_get_uleb(c));
		return true;
	case DW_CFA_def_cfa_sf:
		reg = cfi_get_uleb(c);
		set_cfa(r, reg, factored(r, get_sleb(c)));
		return true;
	case DW_CFA_def_cfa_register:
		set_cfa(r, cfi_get_uleb(c), cfa->offset);
		return true;
	case DW_CFA_def_cfa_offset:
		cfa->offset = (int64_t)cfi_get_uleb(c);
		return true;
	case DW_CFA_def_cfa_offset_sf:
		cfa->offset = factored(r, get_sleb(c));
		return true;
	case DW_CFA_def_cfa_expression:
		*cfa = get_expression(c);
		return true;
	default:
		return false;
	}
}

/* Operations on one register. False: it is none of them. */
static bool run_register(struct run *r, struct cfi_cursor *c, uint8_t op)
{
	uint64_t reg;

	if (op < DW_CFA_offset_extended || op > DW_CFA_GNU_negative_offset_extended ||
	    op == DW_CFA_GNU_args_size || op == DW_CFA_GNU_window_save)
		return false;
	reg = cfi_get_uleb(c);
	switch (op) {
	case DW_CFA_offset_extended:
		set_offset(r, reg, (int64_t)cfi_get_uleb(c));
		return true;
	case DW_CFA_offset_extended_sf:
		set_offset(r, reg, get_sleb(c));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		set_offset(r, reg, -(int64_t)(cfi_get_uleb(c) & INT64_MAX));
		return true;
	case DW_CFA_restore_extended:
		restore(r, reg);
		return true;
	case DW_CFA_undefined:
		set_value(r, reg, (struct cfi_value){.how = CFI_UNDEFINED});
		return true;
	case DW_CFA_same_value:
		set_value(r, reg, (struct cfi_value){.how = CFI_SAME});
		return true;
	case DW_CFA_expression:
		set_value(r, reg, get_expression(c));
		return true;
	case DW_CFA_val_expression:
		(void)get_expression(c);
		set_value(r, reg, (struct cfi_value){.how = CFI_OTHER});
		return true;
	case DW_CFA_register:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		(void)cfi_get_uleb(c);
		set_value(r, reg, (struct cfi_value){.how = CFI_OTHER});
		return true;
	default:
		return false;
	}
}

/* Operations that move the address on. False: it is none of them. */
static bool run_advance(struct run *r, struct cfi_cursor *c, uint8_t op)
{
	uint64_t by;

	if ((op & 0xc0) == DW_CFA_advance_loc)
		by = op & 0x3f;
	else if (op == DW_CFA_advance_loc1 || op == DW_CFA_advance_loc2 ||
		 op == DW_CFA_advance_loc4)
		by = cfi_get(c, op == DW_CFA_advance_loc1 ? 1 : op == DW_CFA_advance_loc2 ? 2 : 4);
	else if (op == DW_CFA_set_loc)
		return cfi_get_address(c, r->cfi, r->cie->encoding, true, &r->address);
	else
		return false;
	r->address += by * r->cie->code_align;
	return true;
}

/* One operation that is no advance. False: not understood. */
static bool run_other(struct run *r, struct cfi_cursor *c, uint8_t op)
{
	switch (op & 0xc0) {
	case DW_CFA_offset:
		set_offset(r, op & 0x3f, (int64_t)cfi_get_uleb(c));
		return true;
	case DW_CFA_restore:
		restore(r, op & 0x3f);
		return true;
	}
	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_GNU_args_size:
		(void)cfi_get_uleb(c);
		return true;
	case DW_CFA_remember_state:
		return remember(r);
	case DW_CFA_restore_state:
		return restore_state(r);
	default:
		return run_cfa(r, c, op) || run_register(r, c, op);
	}
}

bool cfi_run_initial(const struct cfi *cfi, struct cfi_cie *cie, const uint8_t *program,
		     uint64_t bytes)
{
	struct cfi_cursor c = {.at = program, .end = program + bytes};
	struct run r = {.cfi = cfi, .cie = cie};
	bool good = true;

	r.state.cfa.how = CFI_OTHER;
	r.state.ra.how = CFI_OTHER;
	while (good && !c.bad && c.at < c.end)
		good = run_other(&r, &c, (uint8_t)cfi_get(&c, 1));
	cie->initial = r.state;
	return good && !c.bad;
}

/* ---- states as rules ---- */

/* Whether the expression is breg`op` offset, then exactly the `rest`. */
static bool is_breg(const struct cfi_value *v, uint8_t op, const char *rest, size_t rest_bytes,
		    int64_t *ret_offset)
{
	struct cfi_cursor c = {.at = v->expression, .end = v->expression + v->expression_bytes};

	if (cfi_get(&c, 1) != op)
		return false;
	*ret_offset = get_sleb(&c);
	return !c.bad && (size_t)(c.end - c.at) == rest_bytes && !memcmp(c.at, rest, rest_bytes);
}

/* What linkers say of a PLT's entries: the CFA is 8 further up behind the entry's push. */
static bool is_plt(const struct cfi_value *v, int64_t *ret_offset, int64_t *ret_from)
{
	char rest[] = {DW_OP_breg16, 0,		 DW_OP_lit15, DW_OP_and, DW_OP_lit0,
		       DW_OP_ge,     DW_OP_lit3, DW_OP_shl,   DW_OP_plus};

	for (uint8_t n = 0; n < 16; n++) {
		rest[4] = (char)(DW_OP_lit0 + n);
		*ret_from = n;
		if (is_breg(v, DW_OP_breg7, rest, sizeof(rest), ret_offset))
			return true;
	}
	return false;
}

static bool fits(int64_t offset)
{
	return offset >= -(1 << 23) && offset < 1 << 23;
}

static uint64_t make_rule(enum gp_unwind_cfa cfa_kind, enum gp_unwind_bp bp_kind, int64_t cfa,
			  int64_t bp)
{
	if (!fits(cfa))
		return GP_UNWIND_HARD;
	if (!fits(bp))
		return GP_UNWIND_RULE(cfa_kind, GP_UNWIND_BP_LOST, cfa, 0);
	return GP_UNWIND_RULE(cfa_kind, bp_kind, cfa, bp);
}

static enum gp_unwind_bp bp_rule(const struct cfi_value *v, int64_t *ret_offset)
{
	*ret_offset = 0;
	switch (v->how) {
	case CFI_SAME:
		return GP_UNWIND_BP_SAME;
	case CFI_OFFSET:
		*ret_offset = v->offset;
		return GP_UNWIND_BP_CFA;
	case CFI_EXPRESSION:
		if (is_breg(v, DW_OP_breg6, "", 0, ret_offset))
			return GP_UNWIND_BP_BP;
		if (is_breg(v, DW_OP_breg7, "", 0, ret_offset))
			return GP_UNWIND_BP_SP;
		*ret_offset = 0;
		return GP_UNWIND_BP_LOST;
	default:
		return GP_UNWIND_BP_LOST;
	}
}

/* The kernel's frame for a signal's handler, as the C library describes it. */
static uint64_t signal_rule(const struct cfi_state *s)
{
	static const char deref[] = {DW_OP_deref};
	int64_t sp, ra, bp;
	enum gp_unwind_bp bp_kind = bp_rule(&s->bp, &bp);

	if (s->cfa.how != CFI_EXPRESSION || s->ra.how != CFI_EXPRESSION ||
	    !is_breg(&s->cfa, DW_OP_breg7, deref, sizeof(deref), &sp) ||
	    !is_breg(&s->ra, DW_OP_breg7, "", 0, &ra) || ra != sp + 8)
		return GP_UNWIND_HARD;
	return make_rule(GP_UNWIND_SIGNAL, bp_kind, sp, bp);
}

static uint64_t rule_of(const struct cfi_cie *cie, const struct cfi_state *s)
{
	static const char deref[] = {DW_OP_deref};
	enum gp_unwind_bp bp_kind;
	int64_t cfa, bp;

	if (s->ra.how == CFI_UNDEFINED)
		return GP_UNWIND_END;
	if (cie->is_signal)
		return signal_rule(s);
	if (s->ra.how != CFI_OFFSET || s->ra.offset != -8)
		return GP_UNWIND_HARD;
	bp_kind = bp_rule(&s->bp, &bp);
	if (s->cfa.how == CFI_REGISTER && s->cfa.reg == REG_SP)
		return make_rule(GP_UNWIND_SP, bp_kind, s->cfa.offset, bp);
	if (s->cfa.how == CFI_REGISTER && s->cfa.reg == REG_BP)
		return make_rule(GP_UNWIND_BP, bp_kind, s->cfa.offset, bp);
	if (s->cfa.how != CFI_EXPRESSION)
		return GP_UNWIND_HARD;
	if (is_breg(&s->cfa, DW_OP_breg6, deref, sizeof(deref), &cfa))
		return make_rule(GP_UNWIND_BP_AT, bp_kind, cfa, bp);
	if (is_plt(&s->cfa, &cfa, &bp) && bp_kind == GP_UNWIND_BP_SAME)
		return make_rule(GP_UNWIND_PLT, bp_kind, cfa, bp);
	return GP_UNWIND_HARD;
}

int cfi_rules(const struct cfi *cfi, const struct cfi_fde *fde,
	      int (*fn)(uint32_t address, uint64_t rule, void *arg), void *arg)
{
	struct cfi_cursor c = {.at = cfi->data + fde->program,
			       .end = cfi->data + fde->program + fde->program_bytes};
	const struct cfi_cie *cie = &cfi->cies.items[fde->cie];
	struct run r = {.cfi = cfi, .cie = cie, .state = cie->initial, .address = fde->start};
	uint64_t end = (uint64_t)fde->start + fde->bytes, since = r.address;
	int err = 0;

	while (c.at < c.end && !err) {
		uint8_t op = (uint8_t)cfi_get(&c, 1);
		bool moved = run_advance(&r, &c, op);

		if (c.bad || (!moved && !run_other(&r, &c, op)) || c.bad || r.address < since)
			return fn((uint32_t)since, GP_UNWIND_HARD, arg);
		if (!moved || r.address == since)
			continue;
		err = fn((uint32_t)since, rule_of(cie, &r.state), arg);
		if (r.address >= end)
			return err;
		since = r.address;
	}
	return err ? err : fn((uint32_t)since, rule_of(cie, &r.state), arg);
}
