"""TPC-DS: the schemas of its 24 tables, in Spark's types."""

from __future__ import annotations

from weirflow.sql.typing.type_syntax import parse_ddl

_MONEY = "DECIMAL(7,2)"

_ADDRESS = (
    "{0}_street_number STRING, {0}_street_name STRING, {0}_street_type STRING, {0}_suite_number STRING, "
    "{0}_city STRING, {0}_county STRING, {0}_state STRING, {0}_zip STRING, {0}_country STRING, "
    "{0}_gmt_offset DECIMAL(5,2)"
)


def _all(kind: str, prefix: str, names: str) -> str:
    return ", ".join(f"{prefix}_{name} {kind}" for name in names.split())


_PRICES = "wholesale_cost list_price sales_price ext_discount_amt ext_sales_price ext_wholesale_cost ext_list_price"
_STORE_PRICES = f"{_PRICES} ext_tax coupon_amt net_paid net_paid_inc_tax net_profit"
_SENT_PRICES = (
    f"{_PRICES} ext_tax coupon_amt ext_ship_cost net_paid net_paid_inc_tax net_paid_inc_ship net_paid_inc_ship_tax "
    "net_profit"
)
_LOSSES = "return_tax return_amt_inc_tax fee return_ship_cost refunded_cash reversed_charge"
_PARTIES = "refunded_customer_sk refunded_cdemo_sk refunded_hdemo_sk refunded_addr_sk returning_customer_sk "
_PARTIES += "returning_cdemo_sk returning_hdemo_sk returning_addr_sk"
_BILLED = "bill_customer_sk bill_cdemo_sk bill_hdemo_sk bill_addr_sk ship_customer_sk ship_cdemo_sk ship_hdemo_sk "
_BILLED += "ship_addr_sk"

DDL: dict[str, str] = {
    "call_center": (
        "cc_call_center_sk INT, cc_call_center_id STRING, cc_rec_start_date DATE, cc_rec_end_date DATE, "
        "cc_closed_date_sk INT, cc_open_date_sk INT, cc_name STRING, cc_class STRING, cc_employees INT, cc_sq_ft INT, "
        "cc_hours STRING, cc_manager STRING, cc_mkt_id INT, cc_mkt_class STRING, cc_mkt_desc STRING, "
        "cc_market_manager STRING, cc_division INT, cc_division_name STRING, cc_company INT, cc_company_name STRING, "
        f"{_ADDRESS.format('cc')}, cc_tax_percentage DECIMAL(5,2)"
    ),
    "catalog_page": (
        "cp_catalog_page_sk INT, cp_catalog_page_id STRING, cp_start_date_sk INT, cp_end_date_sk INT, "
        "cp_department STRING, cp_catalog_number INT, cp_catalog_page_number INT, cp_description STRING, cp_type STRING"
    ),
    "customer": (
        "c_customer_sk INT, c_customer_id STRING, c_current_cdemo_sk INT, c_current_hdemo_sk INT, "
        "c_current_addr_sk INT, c_first_shipto_date_sk INT, c_first_sales_date_sk INT, c_salutation STRING, "
        "c_first_name STRING, c_last_name STRING, c_preferred_cust_flag STRING, c_birth_day INT, c_birth_month INT, "
        "c_birth_year INT, c_birth_country STRING, c_login STRING, c_email_address STRING, c_last_review_date_sk INT"
    ),
    "customer_address": (f"ca_address_sk INT, ca_address_id STRING, {_ADDRESS.format('ca')}, ca_location_type STRING"),
    "customer_demographics": (
        "cd_demo_sk INT, cd_gender STRING, cd_marital_status STRING, cd_education_status STRING, "
        "cd_purchase_estimate INT, cd_credit_rating STRING, cd_dep_count INT, cd_dep_employed_count INT, "
        "cd_dep_college_count INT"
    ),
    "date_dim": (
        "d_date_sk INT, d_date_id STRING, d_date DATE, d_month_seq INT, d_week_seq INT, d_quarter_seq INT, d_year INT, "
        "d_dow INT, d_moy INT, d_dom INT, d_qoy INT, d_fy_year INT, d_fy_quarter_seq INT, d_fy_week_seq INT, "
        "d_day_name STRING, d_quarter_name STRING, d_holiday STRING, d_weekend STRING, d_following_holiday STRING, "
        "d_first_dom INT, d_last_dom INT, d_same_day_ly INT, d_same_day_lq INT, d_current_day STRING, "
        "d_current_week STRING, d_current_month STRING, d_current_quarter STRING, d_current_year STRING"
    ),
    "household_demographics": (
        "hd_demo_sk INT, hd_income_band_sk INT, hd_buy_potential STRING, hd_dep_count INT, hd_vehicle_count INT"
    ),
    "income_band": "ib_income_band_sk INT, ib_lower_bound INT, ib_upper_bound INT",
    "inventory": "inv_date_sk INT, inv_item_sk INT, inv_warehouse_sk INT, inv_quantity_on_hand INT",
    "item": (
        "i_item_sk INT, i_item_id STRING, i_rec_start_date DATE, i_rec_end_date DATE, i_item_desc STRING, "
        f"i_current_price {_MONEY}, i_wholesale_cost {_MONEY}, i_brand_id INT, i_brand STRING, i_class_id INT, "
        "i_class STRING, i_category_id INT, i_category STRING, i_manufact_id INT, i_manufact STRING, i_size STRING, "
        "i_formulation STRING, i_color STRING, i_units STRING, i_container STRING, i_manager_id INT, "
        "i_product_name STRING"
    ),
    "promotion": (
        "p_promo_sk INT, p_promo_id STRING, p_start_date_sk INT, p_end_date_sk INT, p_item_sk INT, "
        "p_cost DECIMAL(15,2), p_response_target INT, p_promo_name STRING, p_channel_dmail STRING, "
        "p_channel_email STRING, p_channel_catalog STRING, p_channel_tv STRING, p_channel_radio STRING, "
        "p_channel_press STRING, p_channel_event STRING, p_channel_demo STRING, p_channel_details STRING, "
        "p_purpose STRING, p_discount_active STRING"
    ),
    "reason": "r_reason_sk INT, r_reason_id STRING, r_reason_desc STRING",
    "ship_mode": (
        "sm_ship_mode_sk INT, sm_ship_mode_id STRING, sm_type STRING, sm_code STRING, sm_carrier STRING, "
        "sm_contract STRING"
    ),
    "store": (
        "s_store_sk INT, s_store_id STRING, s_rec_start_date DATE, s_rec_end_date DATE, s_closed_date_sk INT, "
        "s_store_name STRING, s_number_employees INT, s_floor_space INT, s_hours STRING, s_manager STRING, "
        "s_market_id INT, s_geography_class STRING, s_market_desc STRING, s_market_manager STRING, s_division_id INT, "
        "s_division_name STRING, s_company_id INT, s_company_name STRING, "
        f"{_ADDRESS.format('s')}, s_tax_precentage DECIMAL(5,2)"
    ),
    "time_dim": (
        "t_time_sk INT, t_time_id STRING, t_time INT, t_hour INT, t_minute INT, t_second INT, t_am_pm STRING, "
        "t_shift STRING, t_sub_shift STRING, t_meal_time STRING"
    ),
    "warehouse": (
        "w_warehouse_sk INT, w_warehouse_id STRING, w_warehouse_name STRING, w_warehouse_sq_ft INT, "
        f"{_ADDRESS.format('w')}"
    ),
    "web_page": (
        "wp_web_page_sk INT, wp_web_page_id STRING, wp_rec_start_date DATE, wp_rec_end_date DATE, "
        "wp_creation_date_sk INT, wp_access_date_sk INT, wp_autogen_flag STRING, wp_customer_sk INT, wp_url STRING, "
        "wp_type STRING, wp_char_count INT, wp_link_count INT, wp_image_count INT, wp_max_ad_count INT"
    ),
    "web_site": (
        "web_site_sk INT, web_site_id STRING, web_rec_start_date DATE, web_rec_end_date DATE, web_name STRING, "
        "web_open_date_sk INT, web_close_date_sk INT, web_class STRING, web_manager STRING, web_mkt_id INT, "
        "web_mkt_class STRING, web_mkt_desc STRING, web_market_manager STRING, web_company_id INT, "
        f"web_company_name STRING, {_ADDRESS.format('web')}, web_tax_percentage DECIMAL(5,2)"
    ),
    "store_sales": ", ".join(
        (
            _all(
                "INT", "ss", "sold_date_sk sold_time_sk item_sk customer_sk cdemo_sk hdemo_sk addr_sk store_sk promo_sk"
            ),
            "ss_ticket_number BIGINT, ss_quantity INT",
            _all(_MONEY, "ss", _STORE_PRICES),
        )
    ),
    "store_returns": ", ".join(
        (
            _all("INT", "sr", "returned_date_sk return_time_sk item_sk customer_sk cdemo_sk hdemo_sk addr_sk store_sk"),
            "sr_reason_sk INT, sr_ticket_number BIGINT, sr_return_quantity INT",
            _all(_MONEY, "sr", f"return_amt {_LOSSES} store_credit net_loss"),
        )
    ),
    "catalog_sales": ", ".join(
        (
            _all("INT", "cs", f"sold_date_sk sold_time_sk ship_date_sk {_BILLED}"),
            _all("INT", "cs", "call_center_sk catalog_page_sk ship_mode_sk warehouse_sk item_sk promo_sk"),
            "cs_order_number BIGINT, cs_quantity INT",
            _all(_MONEY, "cs", _SENT_PRICES),
        )
    ),
    "catalog_returns": ", ".join(
        (
            _all("INT", "cr", f"returned_date_sk returned_time_sk item_sk {_PARTIES}"),
            _all("INT", "cr", "call_center_sk catalog_page_sk ship_mode_sk warehouse_sk reason_sk"),
            "cr_order_number BIGINT, cr_return_quantity INT",
            _all(_MONEY, "cr", f"return_amount {_LOSSES} store_credit net_loss"),
        )
    ),
    "web_sales": ", ".join(
        (
            _all("INT", "ws", f"sold_date_sk sold_time_sk ship_date_sk item_sk {_BILLED}"),
            _all("INT", "ws", "web_page_sk web_site_sk ship_mode_sk warehouse_sk promo_sk"),
            "ws_order_number BIGINT, ws_quantity INT",
            _all(_MONEY, "ws", _SENT_PRICES),
        )
    ),
    "web_returns": ", ".join(
        (
            _all("INT", "wr", f"returned_date_sk returned_time_sk item_sk {_PARTIES}"),
            "wr_web_page_sk INT, wr_reason_sk INT, wr_order_number BIGINT, wr_return_quantity INT",
            _all(_MONEY, "wr", f"return_amt {_LOSSES} account_credit net_loss"),
        )
    ),
}

SCHEMAS = {name: parse_ddl(ddl) for name, ddl in DDL.items()}
