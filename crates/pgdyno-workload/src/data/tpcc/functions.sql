-- The five transactions of TPC-C on the server, each a function. They may be called one per transaction or several.

-- Clause 2.4. The same item may stand in an order twice; each turn takes every stock record once, in the order of its
-- key, so that two orders rarely lock each other out.
CREATE FUNCTION tpcc_new_order(w int, d int, c int, items int[], supplies int[], quantities int[]) RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
  lines CONSTANT int := cardinality(items);
  this_order int;
  factor numeric;
  written int := 0;
  total numeric := 0;
  in_turn int := 0;
  of_turn int;
  sum_of_turn numeric;
BEGIN
  UPDATE district SET d_next_o_id = d_next_o_id + 1
    FROM warehouse, customer
    WHERE d_w_id = w AND d_id = d AND w_id = w AND c_w_id = w AND c_d_id = d AND c_id = c
    RETURNING d_next_o_id - 1, (1 - c_discount) * (1 + w_tax + d_tax) INTO this_order, factor;
  IF this_order IS NULL THEN
    RAISE EXCEPTION 'there is no customer % of district % of warehouse %', c, d, w USING ERRCODE = 'P0002';
  END IF;
  INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
    VALUES (this_order, d, w, c, now(), lines, (w = ALL (supplies))::int);
  INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (this_order, d, w);
  WHILE written < lines LOOP
    in_turn := in_turn + 1;
    WITH line AS (
      SELECT asked, supply, quantity, place, i_price
      FROM (SELECT *, row_number() OVER (PARTITION BY supply, asked ORDER BY place) AS turn
            FROM unnest(items, supplies, quantities) WITH ORDINALITY AS given (asked, supply, quantity, place)) AS turns
      JOIN item ON i_id = asked
      WHERE turn = in_turn
      ORDER BY supply, asked
    ), taken AS (
      UPDATE stock SET
        s_quantity = s_quantity - quantity + CASE WHEN s_quantity - quantity >= 10 THEN 0 ELSE 91 END,
        s_ytd = s_ytd + quantity,
        s_order_cnt = s_order_cnt + 1,
        s_remote_cnt = s_remote_cnt + (supply <> w)::int
      FROM line WHERE s_w_id = supply AND s_i_id = asked
      RETURNING place, asked, supply, quantity, quantity * i_price AS amount,
        CASE d WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
          WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
          WHEN 9 THEN s_dist_09 ELSE s_dist_10 END AS info
    ), booked AS (
      INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
                              ol_dist_info)
        SELECT this_order, d, w, place, asked, supply, quantity, amount, info FROM taken
        RETURNING ol_amount
    )
    SELECT count(*), sum(ol_amount) INTO of_turn, sum_of_turn FROM booked;
    IF of_turn = 0 THEN
      RAISE EXCEPTION 'item number is not valid' USING ERRCODE = 'P0002';
    END IF;
    written := written + of_turn;
    total := total + sum_of_turn;
  END LOOP;
  RETURN total * factor;
END $$;

-- Of the customers of a name, by first name, the middle one, rounded up (clauses 2.5.2.2 and 2.6.2.2).
CREATE FUNCTION tpcc_customer(w int, d int, last text) RETURNS int
LANGUAGE plpgsql STABLE AS $$
DECLARE
  found int;
BEGIN
  SELECT (array_agg(c_id ORDER BY c_first))[(count(*) + 1) / 2] INTO found
    FROM customer WHERE c_w_id = w AND c_d_id = d AND c_last = last;
  IF found IS NULL THEN
    RAISE EXCEPTION 'there is no customer of this name' USING ERRCODE = 'P0002';
  END IF;
  RETURN found;
END $$;

-- Clause 2.5. The customer first and the warehouse last: the row that most wait for is held for the shortest time.
CREATE FUNCTION tpcc_payment(w int, d int, c_w int, c_d int, c int, last text, amount numeric) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  payer int := c;
  name_d text;
  name_w text;
BEGIN
  IF c = 0 THEN
    payer := tpcc_customer(c_w, c_d, last);
  END IF;
  UPDATE customer SET
    c_balance = c_balance - amount,
    c_ytd_payment = c_ytd_payment + amount,
    c_payment_cnt = c_payment_cnt + 1,
    c_data = CASE WHEN c_credit = 'BC'
      THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, d, w, amount, c_data), 500) ELSE c_data END
    WHERE c_w_id = c_w AND c_d_id = c_d AND c_id = payer;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no customer % of district % of warehouse %', payer, c_d, c_w USING ERRCODE = 'P0002';
  END IF;
  UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = w AND d_id = d RETURNING d_name INTO name_d;
  UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = w RETURNING w_name INTO name_w;
  INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (payer, c_d, c_w, d, w, now(), amount, name_w || '    ' || name_d);
  RETURN payer;
END $$;

-- Clause 2.6. All that the terminal would show is read.
CREATE FUNCTION tpcc_order_status(w int, d int, c int, last text) RETURNS int
LANGUAGE plpgsql STABLE AS $$
DECLARE
  asker int := c;
  latest int;
  lines int;
BEGIN
  IF c = 0 THEN
    asker := tpcc_customer(w, d, last);
  END IF;
  PERFORM c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = w AND c_d_id = d AND c_id = asker;
  SELECT o_id INTO latest FROM orders
    WHERE o_w_id = w AND o_d_id = d AND o_c_id = asker ORDER BY o_id DESC LIMIT 1;
  PERFORM ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
    WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = latest;
  GET DIAGNOSTICS lines = ROW_COUNT;
  RETURN lines;
END $$;

-- Clause 2.7, all ten districts at once. Deliveries of one warehouse wait for one another: two of them at a time would
-- find the same oldest orders.
CREATE FUNCTION tpcc_delivery(w int, carrier int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  delivered int;
BEGIN
  -- "tpcc" as a number.
  PERFORM pg_advisory_xact_lock(1953522531, w);
  WITH oldest AS (
    SELECT dd, (SELECT no_o_id FROM new_order WHERE no_w_id = w AND no_d_id = dd ORDER BY no_o_id LIMIT 1) AS oo
    FROM generate_series(1, 10) AS dd
  ), taken AS (
    DELETE FROM new_order USING oldest WHERE no_w_id = w AND no_d_id = dd AND no_o_id = oo
    RETURNING no_d_id, no_o_id
  ), sent AS (
    UPDATE orders SET o_carrier_id = carrier FROM taken
    WHERE o_w_id = w AND o_d_id = no_d_id AND o_id = no_o_id RETURNING o_d_id, o_c_id
  ), lines AS (
    UPDATE order_line SET ol_delivery_d = now() FROM taken
    WHERE ol_w_id = w AND ol_d_id = no_d_id AND ol_o_id = no_o_id RETURNING ol_d_id, ol_amount
  ), owed AS (
    SELECT ol_d_id, sum(ol_amount) AS amount FROM lines GROUP BY ol_d_id
  ), billed AS (
    UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
    FROM sent JOIN owed ON ol_d_id = o_d_id
    WHERE c_w_id = w AND c_d_id = o_d_id AND c_id = o_c_id RETURNING 1
  )
  SELECT count(*) INTO delivered FROM billed;
  RETURN delivered;
END $$;

-- Clause 2.8: of the items in the last 20 orders of a district, how many are short.
CREATE FUNCTION tpcc_stock_level(w int, d int, threshold int) RETURNS int
LANGUAGE plpgsql STABLE AS $$
DECLARE
  next_order int;
  short int;
BEGIN
  SELECT d_next_o_id INTO next_order FROM district WHERE d_w_id = w AND d_id = d;
  SELECT count(*) INTO short
    FROM (SELECT DISTINCT ol_i_id FROM order_line
          WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id >= next_order - 20 AND ol_o_id < next_order) AS sold
    JOIN stock ON s_w_id = w AND s_i_id = ol_i_id
    WHERE s_quantity < threshold;
  RETURN short;
END $$;
